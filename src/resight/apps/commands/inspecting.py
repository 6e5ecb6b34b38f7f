"""`resight info`, `resight encoders` and `resight data`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.commands.adding import Json

if TYPE_CHECKING:
    from resight.data.check import DataCheck


def info(collection: Annotated[Path, typer.Argument(help="The collection.")], json: Json = False) -> None:
    """What a collection holds, how it was made, and how large it is."""
    from resight import kernels
    from resight import recipe as recipes
    from resight.collection import open_collection

    opened = open_collection(collection, must_exist=True)
    facts = {
        "collection": str(collection),
        "images": len(opened),
        "format": opened.description.format,
        "created": opened.description.created,
        "recipe": recipes.to_table(opened.recipe),
        "spaces": list(opened.description.spaces),
        "store_bytes": _size(collection / "images.lance"),
        "index_bytes": _size(collection / "indexes"),
        "calibration": "its own" if (collection / "calibration.json").exists() else "shipped",
        "kernels": kernels.implementation(),
    }
    if json:
        return terminal.print_json(facts)
    for name, value in facts.items():
        if name == "recipe":
            value = opened.recipe.name
        elif name.endswith("_bytes"):
            name, value = name.removesuffix("_bytes"), terminal.say_bytes(float(str(value)))
        elif isinstance(value, list):
            value = "\n              ".join(value)
        print(f"{name:<12}  {value}")
    return None


def encoders(
    names: Annotated[list[str] | None, typer.Argument(help="Some encoders; without names, all of them.")] = None,
    measure: Annotated[
        bool,
        typer.Option("--measure", help="Measure pictures a second here: of those named, or of all that are ready."),
    ] = False,
    json: Json = False,
) -> None:
    """The encoders that there are: family, dimensions, weights, licence, and whether they can run here."""
    from resight.encode import throughput
    from resight.encode.catalogue import list_encoders

    found = list_encoders(names or ())
    if measure:
        wanted = [entry for entry in found if names or entry.ready]
        with terminal.progress("measuring") as report_progress:
            for done, entry in enumerate(wanted, start=1):
                if entry.name != "fused":  # which has no parts of its own
                    place = found.index(entry)
                    found[place] = replace(entry, images_a_second=throughput.measure(entry.name))
                report_progress(done, len(wanted))
    if json:
        return terminal.print_json(found)
    rows = [
        [
            entry.name,
            entry.family,
            _say(entry.dimensions),
            _say(entry.tokens),
            f"{entry.parameters:,.0f} M" if entry.parameters else "–",
            entry.weights + (" (gated)" if entry.gated else ""),
            entry.licence,
            "yes" if entry.ready else "no",
            *([f"{entry.images_a_second:.1f}" if entry.images_a_second else "–"] if measure else []),
        ]
        for entry in found
    ]
    columns = ("name", "family", "dims", "tokens", "parameters", "weights", "licence", "ready")
    terminal.print_table(
        "Encoders", (*columns, *(["images/s"] if measure else [])), rows, right=(2, 3, 4, 8) if measure else (2, 3, 4)
    )
    for reason in {
        entry.missing: None for entry in found if entry.missing and (names or entry.rows != "patch or cell")
    }:
        print(f"  {reason}")
    if not names and any(not entry.ready for entry in found):
        print("  not ready: `resight encoders NAME` tells what it lacks and what to do")
    if measure:
        print("  images/s: 640 × 480 pixels, all cores, without decoding; random weights where those are not here")
    return None


def list_data(json: Json = False) -> None:
    """The data sets that can be read."""
    from resight import plugins

    found = [
        {"name": name, "about": (plugins.find("resight.data.sets", name).__doc__ or "").partition("\n")[0]}
        for name in plugins.names("resight.data.sets")
    ]
    if json:
        return terminal.print_json(found)
    terminal.print_table("Data sets", ("name", "about"), [[entry["name"], entry["about"]] for entry in found])
    return None


def check_data(
    name: Annotated[str, typer.Argument(help="A data set by name, or folder or manifest.")],
    root: Annotated[Path, typer.Argument(help="Where it is.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the data set.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Look only whether the images are there, and decode none.")
    ] = False,
    json: Json = False,
) -> None:
    """A dry run over a data set: counts, missing files, duplicates, unreadable images. Writes nothing."""
    from resight import recipe as recipes
    from resight.data import sets
    from resight.data.check import check_source

    chosen: dict[str, object] = {}
    for setting in settings or ():
        recipes.apply(chosen, setting)
    with terminal.progress("checking") as report_progress:
        found = check_source(sets.build(name, **chosen), root, decoding=not quick, progress=report_progress)
    if json:
        facts = [{**terminal.plain(fact), "ok": fact.ok} for fact in found.facts]
        terminal.print_json({"ok": found.ok, **terminal.plain(found), "facts": facts})
    else:
        _print_check(name, found)
    if not found.ok:
        raise typer.Exit(1)


def _print_check(name: str, found: "DataCheck") -> None:
    print(f"{name}: {found.database:,} database images")
    print(f"queries {found.queries:,}, with truth {found.queries_with_truth:,}")
    print(f"labels {found.labels:,}")
    if found.decoded:
        print(f"with a position {found.with_position:,}, turned by EXIF {found.rotated:,}")
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
        verdict = "as published" if fact.ok else f"NOT as published: {_tell(fact.published)}"
        print(f"{fact.name} {'no such file' if fact.found is None else _tell(fact.found)}, {verdict}")
    if found.published and not found.ok:
        print(f"to download by hand ({found.published.licence}):")
        for download in found.published.downloads:
            print(f"  {download}")
    if images_ok:
        print("all images can be used" if found.decoded else "all images are there; none was decoded")
    else:
        print("some images cannot be used")


def _tell(fact: int | str) -> str:
    return f"{fact:,}" if isinstance(fact, int) else fact


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else 0


def _say(number: int) -> str:
    return f"{number:,}" if number else "varies"
