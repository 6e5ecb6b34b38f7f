"""`resight verify`, `repair`, `backup`, `restore` and `upgrade`."""

from pathlib import Path
from typing import Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json

DAMAGED = 3  # exit code, that of a CollectionError
Folder = Annotated[Path, typer.Argument(help="The collection.")]


def verify(
    collection: Folder,
    deep: Annotated[bool, typer.Option("--deep", help="Read all bytes and every image, not only the ends.")] = False,
    json: Json = False,
) -> None:
    """Compare a collection with its checksums.

    Names every damaged file and, with --deep, every damaged image. Changes nothing. The exit code is 3 if something is
    damaged.
    """
    from resight.collection.upkeep.integrity import describe
    from resight.collection.upkeep.integrity import verify as find_faults

    found = find_faults(collection, deep)
    if json:
        terminal.print_json(found)
    else:
        for fault in found.faults:
            terminal.echo(f"{fault.file}: {fault.problem}")
            if fault.images:
                terminal.echo(f"  images: {_shorten(fault.images)}")
            terminal.echo(f"  fix: {fault.fix}")
        terminal.echo(describe(found, collection))
    if found.faults:
        raise typer.Exit(DAMAGED)


def repair(collection: Folder, json: Json = False) -> None:
    """Remove damaged files, and list the images that are lost.

    Whole images of a damaged file stay. Lost images can be added again: `resight index PHOTOS --into COLLECTION` adds
    those that are missing.
    """
    from resight.collection.upkeep.integrity import describe
    from resight.collection.upkeep.repair import repair as mend

    report = mend(collection)
    if json:
        return terminal.print_json(report)
    for line in report.done or ("nothing was damaged",):
        terminal.echo(line)
    if report.saved:
        terminal.echo(f"{report.saved:,} images in damaged files were whole, and stay")
    if report.lost:
        terminal.echo(f"lost: {_shorten(report.lost)}")
        terminal.echo("  fix: add them again with `resight index PHOTOS --into COLLECTION`")
    terminal.echo(describe(report.left, collection))
    return None


def backup(
    collection: Folder,
    target: Annotated[Path, typer.Argument(help="A new folder for the backup.")],
    json: Json = False,
) -> None:
    """Copy one state of a collection to a new folder.

    Searches and writes may go on meanwhile. Indexes are left out: they are built again when they are needed.
    """
    from resight.collection.upkeep.backup import back_up

    made = back_up(collection, target)
    if json:
        return terminal.print_json(made)
    terminal.echo(f"{made.folder}: {made.files:,} files, {terminal.format_bytes(made.bytes)}")
    return None


def restore(
    backup: Annotated[Path, typer.Argument(help="The backup.")],
    collection: Annotated[Path, typer.Argument(help="A new folder for the collection.")],
    json: Json = False,
) -> None:
    """Make a collection from a backup.

    All files of the backup are checked first.
    """
    from resight.collection.upkeep.backup import restore as bring_back

    made = bring_back(backup, collection)
    if json:
        return terminal.print_json(made)
    terminal.echo(f"{made.folder}: {made.files:,} files, {terminal.format_bytes(made.bytes)}")
    return None


def upgrade(collection: Folder, json: Json = False) -> None:
    """Bring a collection to the present format.

    Format 2 has checksums. Older formats can be read and added to without it.
    """
    from resight.collection.upkeep.upgrade import upgrade as bring_up

    before, after = bring_up(collection)
    if json:
        return terminal.print_json({"collection": collection, "before": before, "after": after})
    changed = f"format {before} → {after}" if before != after else f"format {after} already"
    terminal.echo(f"{collection}: {changed}")
    return None


def _shorten(ids: tuple[str, ...]) -> str:
    return ", ".join(ids[:10]) + (f" and {len(ids) - 10:,} more" if len(ids) > 10 else "")
