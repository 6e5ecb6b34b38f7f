"""`resight data`: list the data sets, check one on disk, and write its true boxes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json

if TYPE_CHECKING:
    from resight.data.check import DataCheck
    from resight.data.sets import DataSource

app = typer.Typer(
    rich_markup_mode=None, help="List data sets, check one on disk, and write its true boxes.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="A data set by name; or folder, or manifest.")]
Root = Annotated[Path, typer.Argument(help="Its folder or file.")]
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the data set.")]


@app.command("list")
def list_data(json: Json = False) -> None:
    """List the data sets that resight can read."""
    from resight import plugins

    found = [
        {"name": name, "about": (plugins.find("resight.data.sets", name).__doc__ or "").partition("\n")[0]}
        for name in plugins.names("resight.data.sets")
    ]
    if json:
        return terminal.print_json(found)
    terminal.print_table("Data sets", ("name", "about"), [[entry["name"], entry["about"]] for entry in found])
    return None


@app.command("check")
def check_data(
    name: Name,
    root: Root,
    settings: Settings = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only check that the images exist; decode none.")] = False,
    json: Json = False,
) -> None:
    """Check a data set: counts, missing files, duplicates, unreadable images. Writes nothing."""
    from resight.data.check import check_source

    with terminal.progress("checking") as bar:
        found = check_source(_build(name, settings), root, decoding=not quick, progress=bar)
    if json:
        facts = [{**terminal.plain(fact), "ok": fact.ok} for fact in found.facts]
        terminal.print_json({"ok": found.ok, **terminal.plain(found), "facts": facts})
    else:
        _print_check(name, found)
    if not found.ok:
        raise typer.Exit(1)


@app.command("boxes")
def write_boxes(
    name: Name,
    root: Root,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The box file, a CSV table.")],
    settings: Settings = None,
    json: Json = False,
) -> None:
    """Write the true boxes of the database images as a file: regions to describe, or to learn codes from."""
    from resight.data.check import export_boxes, list_boxes

    boxes = list_boxes(_build(name, settings).load(root))
    export_boxes(boxes, out)
    written = {"images": len(boxes), "boxes": sum(map(len, boxes.values())), "file": str(out)}
    if json:
        return terminal.print_json(written)
    print(f"wrote {out}: {written['boxes']:,} boxes of {written['images']:,} images")
    return None


@app.command("manifest")
def write_manifest(
    name: Name,
    root: Root,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The manifest: .csv, .jsonl, .ndjson or .json.")],
    settings: Settings = None,
    json: Json = False,
) -> None:
    """Write a data set as a manifest, which `resight eval`, `index` and others read."""
    from resight.data.write_manifest import write_manifest as write

    dataset = _build(name, settings).load(root)
    written = write(dataset, out)
    if json:
        return terminal.print_json({"file": str(out), **terminal.plain(written), "skipped": dataset.skipped})
    terminal.print_skipped(dataset.skipped)
    both = f", {written.both:,} images are both" if written.both else ""
    print(f"wrote {out}: {written.database:,} database images, {written.queries:,} queries{both}")
    if written.reordered:
        print("the queries come in the order of the database, because each image has one row")
    return None


def _build(name: str, settings: list[str] | None) -> "DataSource":
    from resight.data.set_source import build_set

    return build_set(name, tuple(settings or ()))


def _print_check(name: str, found: "DataCheck") -> None:
    print(f"{name}: {found.database:,} database images")
    print(f"queries {found.queries:,}, with truth {found.queries_with_truth:,}")
    print(f"labels {found.labels:,}")
    if found.decoded:
        print(f"with a position {found.with_position:,}, rotated by EXIF {found.rotated:,}")
        print("modes " + ", ".join(f"{mode} {count:,}" for mode, count in found.modes.items()))
    if found.smallest and found.largest:
        print(f"sizes {found.smallest[0]}×{found.smallest[1]} to {found.largest[0]}×{found.largest[1]} pixels")
    for label, items in (("missing", found.missing), ("unreadable", found.unreadable), ("skipped", found.skipped)):
        print(f"{label} {len(items):,}")
        for item in items[: terminal.SHOWN]:
            print(f"  {item.path}: {item.reason}")
    if found.decoded:
        print(f"exact duplicates {len(found.duplicates):,} groups")
    for group in found.duplicates[: terminal.SHOWN]:
        print(f"  {', '.join(group)}")
    images_ok = not (found.missing or found.unreadable or found.skipped)
    for fact in found.facts:
        verdict = "as published" if fact.ok else f"NOT as published: {_format(fact.published)}"
        print(f"{fact.name} {'no such file' if fact.found is None else _format(fact.found)}, {verdict}")
    if found.published and not found.ok:
        print(f"download these yourself ({found.published.licence}):")
        for download in found.published.downloads:
            print(f"  {download}")
    if images_ok:
        print("all images can be used" if found.decoded else "all images exist; none was decoded")
    else:
        print("some images cannot be used")


def _format(fact: int | str) -> str:
    return f"{fact:,}" if isinstance(fact, int) else fact
