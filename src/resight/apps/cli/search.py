"""`resight search`: one image or many, each with a verdict and its answers; how every command opens a collection."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.apps import terminal
from resight.apps.cli.options import Attribution, Json, Set, TilesOption, Where, complete, read_tiles, refuse_swapped
from resight.errors import InputError, ResightError

if TYPE_CHECKING:
    from resight.collection import Collection
    from resight.collection.answer import Answer
    from resight.search.request import SearchRequest, StoredImage
    from resight.types import Box, Hit, ImageRef, Recipe

    Source = str | ImageRef | StoredImage


def search(
    collection: Annotated[Path, typer.Argument(help="The collection.")],
    images: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="IMAGES...",
            help="What to look for: images, folders, addresses, ids of stored images; -: a list on standard input.",
        ),
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option(
            "--id", metavar="ID", help="Look for a stored image; may be repeated.", autocompletion=complete("ids")
        ),
    ] = None,
    box: Annotated[str | None, typer.Option(metavar="X0,Y0,X1,Y1", help="Look only for this part of it.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Number of answers.")] = 10,
    least: Annotated[
        float | None,
        typer.Option("--least", min=0, max=1, metavar="P", help="Only answers of at least this probability."),
    ] = None,
    where: Where = None,
    near: Annotated[str | None, typer.Option(metavar="LAT,LON,METRES", help="Only images taken near a place.")] = None,
    settings: Set = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="ENGINE",
            help="Where to search: local, ray, ray://HOST:PORT, ray://auto, qdrant://HOST:PORT/NAME or qdrant:FOLDER.",
        ),
    ] = "local",
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page that shows the answers.")] = None,
    tiles: TilesOption = "",
    attribution: Attribution = "",
    json: Json = False,
) -> None:
    """Find the same object in a collection.

    Shows in which images it is, where in them, and how sure that is. With several images, --json prints one line each.
    """
    from resight.search.request import SearchRequest, parse_box, parse_near

    region = parse_box(box, "--box")
    request = SearchRequest.parse("", k, box=region, where=where or (), near=parse_near(near, "--near"))
    layer = read_tiles(tiles, attribution)
    refuse_swapped(collection, images or ())
    queries = _list_queries(images or (), ids or ())
    if engine == "local":
        from resight.store import skip_pandas

        skip_pandas()
    opened = open_to_search(collection, settings, "local" if engine.startswith("qdrant:") else engine)
    size = len(opened)
    if len(queries) > 1 and request.filters:
        opened.view().filter_images(request.filters)  # a wrong filter is one error, not one per image
    sections, failed = [], 0
    for query, answer in _ask(opened, queries, request, engine):
        name = name_query(query)
        if isinstance(answer, ResightError):
            failed += 1
            _print_failure(name, answer, json)
            continue
        answer = keep_likely(answer, least)
        if html:
            sections.append(_make_section(opened, query, answer, len(queries) > 1))
        verdict = _format_verdict(answer, size, least, bool(request.filters))
        if json:
            row = _to_row(name, region, verdict, answer)
            (terminal.print_json if len(queries) == 1 else terminal.print_json_line)(row)
        elif len(queries) == 1:
            terminal.echo(verdict)
            print_hits(f"{name} in {collection} ({size:,} images)", answer.hits)
            if answer.hits and answer.ranking.proof:
                terminal.echo(f"shortlist: {answer.ranking.proof}")
            stages = (f"{stage} {1000 * seconds:.0f} ms" for stage, seconds in answer.ranking.seconds.items())
            terminal.detail(f"time: {', '.join(stages)}")
        else:
            terminal.echo(f"{name}: {verdict}{_name_best(answer)}")
    if html and sections:
        from resight.explain.search_page import render_many

        title = name_query(queries[0]) if len(queries) == 1 else f"{len(queries):,} searches"
        terminal.write_text(html, render_many(f"resight: {Path(title).name}", sections, layer))
        if not json:
            terminal.echo(f"wrote {html}")
    if failed:
        raise SystemExit(InputError.exit_code)


def open_to_search(path: Path, settings: list[str] | None, engine: str = "local") -> "Collection":
    """An existing collection, its recipe changed by `--set` for this run, searched by `engine`."""
    from resight import recipe as recipes
    from resight.collection import metadata, open_collection

    recipe = None
    if settings:
        from resight.recipe.overrides import apply

        table = recipes.to_table(metadata.read(path).recipe)
        for setting in settings:
            apply(table, setting)
        recipe = recipes.parse(table)
        recipes.refuse_idle_index(recipe, settings)
    opened = open_collection(path, recipe, must_exist=True, engine=engine)
    if engine != "local":
        report_local_indexes(opened.recipe, engine)
    return opened


def report_local_indexes(recipe: "Recipe", engine: str) -> None:
    """Names, on stderr, the indexes that this process searches although the user named an engine."""
    from resight.collection.engine import list_local

    for name in list_local(recipe, engine):
        terminal.note(f"the index {name!r} stays on this machine: shards would change its answers")


def _list_queries(images: Sequence[str], ids: Sequence[str]) -> "list[Source]":
    """Images, those of folders, those named on standard input, and stored images by id."""
    from resight.search.request import StoredImage

    queries: list[Source] = []
    for name in images:
        lines = filter(None, (line.strip() for line in sys.stdin)) if name == "-" else [name]
        for line in lines:
            queries += _list_folder(Path(line)) if Path(line).is_dir() else [line]
    queries += [StoredImage(id) for id in ids]
    if not queries:
        raise InputError(
            "there is no image to look for",
            expected="images, folders, - with a list on standard input, or --id ID",
            actual=", ".join(images) or "none",
            fix="e.g. resight search photos.resight query.jpg",
        )
    return queries


def _list_folder(folder: Path) -> "list[ImageRef]":
    from resight.data.folder_walk import walk
    from resight.types import ImageRef, Skipped

    found = list(walk(folder))
    terminal.print_skipped([item for item in found if isinstance(item, Skipped)])
    return [item for item in found if isinstance(item, ImageRef)]


def _ask(
    opened: "Collection", queries: "Sequence[Source]", request: "SearchRequest", engine: str
) -> "Iterator[tuple[Source, Answer | ResightError]]":
    """Each query with its answer, or with why it has none; an error of a single query is raised."""
    if engine.startswith("qdrant:"):
        from resight.collection.qdrant.exported_search import ask_engine

        for query in queries:
            yield query, ask_engine(opened, engine, replace(request, image=query))
    elif len(queries) == 1:
        yield queries[0], opened.view().ask(replace(request, image=queries[0]))
    else:
        with terminal.progress("searching") as bar:
            yield from zip(queries, opened.ask_batch(queries, request, bar), strict=True)


def name_query(query: "Source") -> str:
    return query if isinstance(query, str) else str(getattr(query, "path", query.id))


def keep_likely(answer: "Answer", least: float | None) -> "Answer":
    """The answer with the hits of at least this probability."""
    if least is None:
        return answer
    if any(hit.probability is None for hit in answer.hits):
        raise InputError(
            "--least needs probabilities, and this collection gives none",
            expected="a calibrated recipe",
            actual="answers without a probability",
            fix="`resight calibrate` fits them to pairs that you know, or leave out --least",
        )
    return replace(answer, hits=tuple(hit for hit in answer.hits if (hit.probability or 0.0) >= least))


def _format_verdict(answer: "Answer", images: int, least: float | None, filtered: bool) -> str:
    from resight.probability_words import format_outcome

    if least is not None and not answer.hits and answer.ranking.ids:
        return f"no answer of at least {least:.0%}: probably not among these {images:,} images"
    return format_outcome([hit.probability for hit in answer.hits], images, filtered)


def _name_best(answer: "Answer") -> str:
    from resight.probability_words import format_probability, is_likely

    likely = [hit for hit in answer.hits if is_likely(hit.probability)] or list(answer.hits[:1])
    return ": " + ", ".join(f"{hit.id} ({format_probability(hit.probability)})" for hit in likely) if likely else ""


def _to_row(name: str, region: "Box | None", verdict: str, answer: "Answer") -> Mapping[str, Any]:
    return {
        "query": name,
        "box": region,
        "verdict": verdict,
        "hits": answer.hits,
        "seconds": answer.ranking.seconds,
        "proof": answer.ranking.proof,
    }


def _print_failure(name: str, error: ResightError, json: bool) -> None:
    if json:
        parts = {part: getattr(error, part) for part in ("problem", "expected", "actual", "fix")}
        terminal.print_json_line({"query": name, "error": parts})
    else:
        terminal.echo(f"{name}: {error.problem}", file=sys.stderr)


def _make_section(opened: "Collection", query: "Source", answer: "Answer", one_of_many: bool) -> Any:
    from resight.apps.answer_page import make_section

    path = getattr(query, "path", None) or Path(name_query(query))
    record = opened.view().find(name_query(query)) if not path.exists() else None
    return make_section(answer, record.path if record else path, path.name if one_of_many else "")


def _format_boxes(hit: "Hit") -> str:
    boxes = () if hit.box is None else (hit.box, *hit.other_boxes)
    return "\n".join(", ".join(f"{side:.0f}" for side in box) for box in boxes)


def print_hits(title: str, hits: tuple["Hit", ...]) -> None:
    if not hits:
        return
    rows = [
        [
            str(rank),
            hit.id,
            "–" if hit.probability is None else f"{hit.probability:.1%}",
            f"{hit.score:.2f}",
            f"{hit.stages.get('inliers', 0):.0f}",
            _format_boxes(hit),
        ]
        for rank, hit in enumerate(hits, start=1)
    ]
    columns = ("", "image", "same object", "score", "inliers", "box x0, y0, x1, y1")
    terminal.print_table(title, columns, rows, right=(0, 2, 3, 4))
