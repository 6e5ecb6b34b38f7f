"""`resight demo`: the main job on photographs that come with the package mvtb-data."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.commands.adding import Json

if TYPE_CHECKING:
    from resight.apps.demonstration import Outcome


def demo(
    out: Annotated[Path, typer.Option(help="A folder for the collection and the page.")] = Path("demo"),
    json: Json = False,
) -> None:
    """Index a folder of photographs, find the same things in them, and write a page that shows where and why."""
    from resight.apps.demonstration import ask_questions, find_photos, gather_photos
    from resight.apps.views import make_section
    from resight.collection import open_collection
    from resight.explain.page import render_many

    started = time.perf_counter()
    photos = find_photos()
    collection = open_collection(out / "photos.resight")
    with terminal.progress("indexing") as report_progress:
        report = collection.add(gather_photos(photos), progress=report_progress)
    index_seconds = time.perf_counter() - started

    outcomes = list(ask_questions(collection, photos, out))
    sections = [make_section(outcome.answer, outcome.image, outcome.question.title) for outcome in outcomes]
    page = out / "demo.html"
    terminal.write_text(page, render_many("resight demo: is it in these photographs, and where?", sections))

    if json:
        return terminal.print_json(
            {
                "images": len(collection),
                "right": sum(outcome.right for outcome in outcomes),
                "questions": [outcome.summary() for outcome in outcomes],
                "page": page,
                "seconds": time.perf_counter() - started,
            }
        )
    print(f"{len(collection)} photographs, {report.added} newly indexed in {index_seconds:.1f} s")
    terminal.print_table("What was looked for", *_table(outcomes), right=(2,))
    right = sum(outcome.right for outcome in outcomes)
    print(f"{right} of {len(outcomes)} answers are right; {time.perf_counter() - started:.1f} s in all; look at {page}")
    return None


def _table(outcomes: list["Outcome"]) -> tuple[tuple[str, ...], list[list[str]]]:
    rows = []
    for outcome in outcomes:
        best = outcome.answer.hits[0]
        box = "" if best.box is None else ", ".join(f"{side:.0f}" for side in best.box)
        rows.append([outcome.question.title, best.id, f"{best.probability:.1%}", box, outcome.verdict])
    return ("question", "best answer", "same thing", "box", "so it is"), rows
