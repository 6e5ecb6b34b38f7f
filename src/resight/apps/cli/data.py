"""`resight data`: list the data sets, download one, check it on disk, and write it as a manifest or its true boxes."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json, complete
from resight.errors import InputError

if TYPE_CHECKING:
    from resight.data.check import DataCheck
    from resight.data.download import Downloaded, Plan
    from resight.data.download_catalogue import Entry, Part
    from resight.data.sets import DataSource

MEGABYTE = 10**6

app = typer.Typer(
    rich_markup_mode=None,
    help="Download, check and list data sets; write them as manifests.",
    no_args_is_help=True,
)

Name = Annotated[
    str,
    typer.Argument(help="A data set by name; or folder, or manifest.", autocompletion=complete("sets")),
]
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


@app.command("get")
def get_data(
    name: Name,
    root: Annotated[Path | None, typer.Argument(help="The folder to download to.", show_default=False)] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", metavar="PART", help="Only this part (see --list); PART:0-9 takes some of its archives."
        ),
    ] = None,
    list_parts: Annotated[bool, typer.Option("--list", help="Show the parts, and download nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before the download.")] = False,
    catalogue: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your own list of downloads, e.g. of a mirror (TOML).")
    ] = None,
    json: Json = False,
) -> None:
    """Download and unpack a data set. Run it again to continue after a stop."""
    from resight.data.download import check_plan, list_manual, make_plan, run_plan
    from resight.data.download_catalogue import find_entry

    entry = find_entry(name, catalogue)
    if list_parts:
        return _list_parts(name, entry, json)
    if root is None:
        raise InputError("no folder to download to", expected=f"resight data get {name} ROOT", actual="no ROOT")
    plan = make_plan(name, root, entry, only or ())
    done: list[Downloaded] = []
    if plan.missing:
        _print_plan(plan)
        check_plan(plan)
        _confirm(plan, yes)
        with _byte_progress() as progress:
            for result in run_plan(plan, lambda step: progress(step.file.name)):
                done.append(result)
                _print_downloaded(result)
    manual = list_manual(entry, str(root))
    if json:
        return terminal.print_json(
            {"name": name, "root": root, "files": done, "licence": entry.licence, "manual": manual}
        )
    terminal.echo(f"{name} is in {root}" if done else f"{name} was in {root} already")
    for step in manual:
        terminal.echo(f"to do by hand: {step}")
    for settings in entry.check:
        terminal.echo(f"check it with: resight data check {name} {root}{f' --set {settings}' if settings else ''}")
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
    terminal.echo(f"wrote {out}: {written['boxes']:,} boxes of {written['images']:,} images")
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
    terminal.echo(f"wrote {out}: {written.database:,} database images, {written.queries:,} queries{both}")
    if written.reordered:
        terminal.echo("the queries come in the order of the database, because each image has one row")
    return None


def _build(name: str, settings: list[str] | None) -> "DataSource":
    from resight.data.set_source import build_set

    return build_set(name, tuple(settings or ()))


def _list_parts(name: str, entry: "Entry", json: bool) -> None:
    if json:
        parts = [
            {"name": part.name, "about": part.about, "files": part.count, "bytes": part.bytes}
            | {"unknown_sizes": part.unknown, "optional": part.optional, "manual": part.manual}
            for part in entry.parts
        ]
        facts = {"title": entry.title, "source": entry.source, "licence": entry.licence, "layout": entry.layout}
        return terminal.print_json({"name": name, **facts, "manual": entry.manual, "parts": parts})
    rows = [
        [part.name, str(part.count or "–"), _format_total(part), _name_status(part.optional, part.manual), part.about]
        for part in entry.parts
    ]
    if rows:
        terminal.print_table(entry.title, ("part", "files", "size", "", "about"), rows, right=(1, 2))
    else:
        terminal.echo(f"{entry.title}: {entry.reason}")
    for step in entry.manual:
        terminal.echo(f"to do by hand: {step}")
    terminal.echo(f"source: {entry.source}\nlicence: {entry.licence}")
    return None


def _name_status(optional: bool, manual: tuple[str, ...]) -> str:
    return "by hand" if manual else "only with --only" if optional else ""


def _print_plan(plan: "Plan") -> None:
    """On stderr, as is the question that follows it, so that a pipe gets only the answer."""
    terminal.echo(
        f"{plan.entry.title}: {len(plan.missing):,} files to {plan.root}, size {_format_total(plan)}", file=sys.stderr
    )
    for step in plan.missing[: terminal.SHOWN]:
        kind = (step.file.checksum or step.file.checksums).partition(":")[0]
        checked = f"{kind} checksum" if kind else "no checksum known"
        terminal.echo(f"  {_format_bytes(step.bytes):>8}  {step.file.url} ({checked})", file=sys.stderr)
    if len(plan.missing) > terminal.SHOWN:
        terminal.echo(f"  … and {len(plan.missing) - terminal.SHOWN:,} more", file=sys.stderr)
    if len(plan.missing) < len(plan.steps):
        terminal.echo(f"{len(plan.steps) - len(plan.missing):,} files are there already", file=sys.stderr)
    terminal.echo(f"source: {plan.entry.source}\nlicence: {plan.entry.licence}", file=sys.stderr)
    terminal.echo(f"disk space: {_format_bytes(plan.disk_bytes)} while unpacking", file=sys.stderr)


def _confirm(plan: "Plan", yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(
            "the download is not confirmed",
            expected="a terminal, or --yes",
            actual="no terminal",
            fix="read the licence above, and add --yes if you accept it",
        )
    typer.confirm(f"Download these {len(plan.missing):,} files (size {_format_total(plan)})?", abort=True, err=True)


def _format_total(files: "Plan | Part") -> str:
    """Of 2 files, of which one has a known size: 1.9 GB + 1 unknown."""
    unknown = [f"{files.unknown:,} unknown"] if files.unknown else []
    return " + ".join([*([_format_bytes(files.bytes)] if files.bytes else []), *unknown]) or "–"


def _print_downloaded(result: "Downloaded") -> None:
    checked = f"{result.checksum.partition(':')[0]} checksum right" if result.checksum else "no checksum known"
    files = f"{result.files:,} files in" if result.files > 1 else "to"
    terminal.echo(
        f"{result.part}: {result.url}, {_format_bytes(result.bytes)}, {checked}; {files} {result.to}", file=sys.stderr
    )


@contextmanager
def _byte_progress() -> Iterator[Callable[[str], Callable[[int, int], None]]]:
    """A progress bar in megabytes, for one file after the other."""
    with terminal.progress("downloading") as bar:

        def start(label: str) -> Callable[[int, int], None]:
            bar.restart(f"{label}, MB")
            return lambda done, total: bar(done // MEGABYTE, max(total // MEGABYTE, 1))

        yield start


def _format_bytes(count: int | None) -> str:
    return "size ?" if count is None else terminal.format_bytes(count)


def _print_check(name: str, found: "DataCheck") -> None:
    terminal.echo(f"{name}: {found.database:,} database images")
    terminal.echo(f"queries {found.queries:,}, with truth {found.queries_with_truth:,}")
    terminal.echo(f"labels {found.labels:,}")
    if found.decoded:
        terminal.echo(f"with a position {found.with_position:,}, rotated by EXIF {found.rotated:,}")
        terminal.echo("modes " + ", ".join(f"{mode} {count:,}" for mode, count in found.modes.items()))
    if found.smallest and found.largest:
        terminal.echo(f"sizes {found.smallest[0]}×{found.smallest[1]} to {found.largest[0]}×{found.largest[1]} pixels")
    for label, items in (("missing", found.missing), ("unreadable", found.unreadable), ("skipped", found.skipped)):
        terminal.echo(f"{label} {len(items):,}")
        for item in items[: terminal.SHOWN]:
            terminal.echo(f"  {item.path}: {item.reason}")
    if found.decoded:
        terminal.echo(f"exact duplicates {len(found.duplicates):,} groups")
    for group in found.duplicates[: terminal.SHOWN]:
        terminal.echo(f"  {', '.join(group)}")
    images_ok = not (found.missing or found.unreadable or found.skipped)
    for fact in found.facts:
        verdict = "as published" if fact.ok else f"NOT as published: {_format(fact.published)}"
        terminal.echo(f"{fact.name} {'no such file' if fact.found is None else _format(fact.found)}, {verdict}")
    if found.published and not found.ok:
        terminal.echo(f"download these yourself ({found.published.licence}), or see `resight data get {name} --list`:")
        for download in found.published.downloads:
            terminal.echo(f"  {download}")
    if images_ok:
        terminal.echo("all images can be used" if found.decoded else "all images exist; none was decoded")
    else:
        terminal.echo("some images cannot be used")


def _format(fact: int | str) -> str:
    return f"{fact:,}" if isinstance(fact, int) else fact
