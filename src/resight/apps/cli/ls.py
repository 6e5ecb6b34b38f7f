"""`resight ls`: the images of a collection, or its attributes, for people, spreadsheets and programs."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json, Where, complete, refuse_ids
from resight.errors import InputError
from resight.files.remote import to_url

if TYPE_CHECKING:
    from resight.collection.attributes import AttributeSummary
    from resight.store import ImageRecord

FACTS = ("id", "path", "width", "height", "bytes")
SHOWN = 6  # values of an attribute


def ls(
    collection: Annotated[Path, typer.Argument(help="The collection.")],
    ids: Annotated[
        list[str] | None, typer.Argument(help="Ids of images; default: all.", autocompletion=complete("ids"))
    ] = None,
    where: Where = None,
    near: Annotated[str | None, typer.Option(metavar="LAT,LON,METRES", help="Only images taken near a place.")] = None,
    attributes: Annotated[
        bool, typer.Option("--attributes", help="List the attributes that filters can use, instead of images.")
    ] = False,
    long: Annotated[bool, typer.Option("-l", "--long", help="Also size, file and attributes.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV for spreadsheets.")] = False,
    json: Json = False,
) -> None:
    """List the ids of a collection, one per line, or its attributes."""
    from resight.collection import open_collection
    from resight.search.filters import parse
    from resight.search.request import parse_near

    if csv and json:
        raise InputError("--csv and --json exclude each other", fix="give one of them")
    filters = parse(where or (), parse_near(near, "--near"))
    view = open_collection(collection, must_exist=True).view()
    if attributes:
        return _print_attributes(view.attributes(), csv, json)
    missing = [id for id in ids or () if id not in view.stamps]
    if missing:
        raise refuse_ids(missing, view.stamps)
    chosen = ids or list(view.stamps)
    if filters:
        met = view.filter_images(filters)
        chosen = [id for id in chosen if id in met]
    if json:
        return terminal.print_json([_to_row(record) for record in view.records(chosen)])
    if csv:
        return _print_csv(list(view.records(chosen)))
    if long:
        rows = [_to_cells(record) for record in view.records(chosen)]
        title = f"{collection} ({len(chosen):,} of {len(view):,} images)"
        return terminal.print_table(title, ("image", "size", "file", "attributes"), rows)
    for id in chosen:
        terminal.echo(id)
    return None


def _to_row(record: "ImageRecord") -> dict[str, object]:
    facts = (record.id, to_url(record.path), *record.size, record.bytes)
    return {**dict(zip(FACTS, facts, strict=True)), "attributes": dict(record.attributes)}


def _to_cells(record: "ImageRecord") -> list[str]:
    from resight.explain.format import format_value

    values = (f"{name}={format_value(value)}" for name, value in record.attributes.items())
    return [record.id, f"{record.size[0]} × {record.size[1]}", to_url(record.path), ", ".join(values)]


def _print_csv(records: "Sequence[ImageRecord]") -> None:
    """One column per attribute, after those of every image."""
    from resight.files.csv_cells import make_writer

    names = list(dict.fromkeys(name for record in records for name in record.attributes))
    writer = make_writer(sys.stdout, "\n")
    writer.writerow([*FACTS, *names])
    for record in records:
        row = _to_row(record)
        writer.writerow([*(row[fact] for fact in FACTS), *(record.attributes.get(name, "") for name in names)])


def _print_attributes(summaries: "Sequence[AttributeSummary]", csv: bool, json: bool) -> None:
    from resight.explain.format import format_value

    if json:
        return terminal.print_json(summaries)
    rows = []
    for one in summaries:
        common = ", ".join(f"{format_value(value)} ({count:,})" for value, count in one.values[:SHOWN])
        if one.minimum is not None and one.maximum is not None:
            common = f"{format_value(one.minimum)} to {format_value(one.maximum)}"
        rows.append([one.name, one.kind, f"{one.count:,}", common + (" …" if len(one.values) > SHOWN else "")])
    columns = ("attribute", "kind", "images", "values")
    if csv:
        from resight.files.csv_cells import make_writer

        make_writer(sys.stdout, "\n").writerows([columns, *rows])
        return None
    if not rows:
        return terminal.echo("no image has an attribute: a manifest adds them, and EXIF positions")
    return terminal.print_table("", columns, rows, right=(2,))
