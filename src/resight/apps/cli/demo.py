"""`resight demo`: index the photographs of the package mvtb-data (MIT) and ask nine questions with known answers.

The photographs show a campus walk with views held out, the Eiffel Tower and a building from several standpoints, and a
crowd drawn in black and white. Nothing is downloaded.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json
from resight.errors import MissingExtra, install_extra

if TYPE_CHECKING:
    from resight.collection import Collection
    from resight.collection.answer import Answer
    from resight.types import Box, ImageRef


def demo(
    out: Annotated[Path, typer.Option(help="A folder for the collection and the page.")] = Path("demo"),
    json: Json = False,
) -> None:
    """Index sample photographs, find objects in them, write a page.

    The page shows where each object is, and why resight thinks so. Nothing is downloaded.
    """
    from resight.apps.answer_page import make_section
    from resight.collection import open_collection
    from resight.explain.search_page import render_many

    started = time.perf_counter()
    photos = find_photos()
    collection = open_collection(out / "photos.resight")
    with terminal.progress("indexing") as bar:
        report = collection.add(gather_photos(photos), progress=bar)
    index_seconds = time.perf_counter() - started

    outcomes = list(ask_questions(collection, photos, out))
    sections = [make_section(outcome.answer, outcome.image, outcome.question.title) for outcome in outcomes]
    page = out / "demo.html"
    terminal.write_text(page, render_many("resight demo: is it in these photographs, and where?", sections))

    right = sum(outcome.right for outcome in outcomes)
    if json:
        return terminal.print_json(
            {
                "images": len(collection),
                "right": right,
                "questions": [outcome.summary() for outcome in outcomes],
                "page": page,
                "seconds": time.perf_counter() - started,
            }
        )
    terminal.echo(f"{len(collection)} photographs, {report.added} newly indexed in {index_seconds:.1f} s")
    terminal.print_table("Questions", *_tabulate(outcomes), right=(2,))
    terminal.echo(
        f"{right} of {len(outcomes)} answers are right; {time.perf_counter() - started:.1f} s in total; open {page}"
    )
    return None


def _tabulate(outcomes: list["Outcome"]) -> tuple[tuple[str, ...], list[list[str]]]:
    rows = []
    for outcome in outcomes:
        best = outcome.answer.hits[0]
        box = "" if best.box is None else ", ".join(f"{side:.0f}" for side in best.box)
        rows.append([outcome.question.title, best.id, f"{best.probability:.1%}", box, outcome.verdict])
    return ("question", "best answer", "same object", "box", "verdict"), rows


LEFT_OUT = ("holdout/", "calibration/", "seq/", "mosaic/")  # held-out views, and series without a subject
FIGURE: "Box" = (190.0, 305.0, 330.0, 445.0)  # the figure with the striped jumper and the people around him


@dataclass(frozen=True)
class Question:
    title: str
    query: str  # a photograph of the package that the collection lacks
    answers: tuple[str, ...]  # right ids for the best answer; if empty, resight must find none likely
    box: "Box | None" = None  # where the object is in the answer, if known


@dataclass(frozen=True)
class Outcome:
    question: Question
    image: Path
    answer: "Answer"

    @property
    def right(self) -> bool:
        best = self.answer.hits[0]
        if not self.question.answers:
            return (best.probability or 0.0) < 0.5
        return best.id in self.question.answers and (
            self.question.box is None or overlap(best.box, self.question.box) >= 0.5
        )

    @property
    def verdict(self) -> str:
        unsure = bool(self.question.answers) and (self.answer.hits[0].probability or 0.0) < 0.5
        return ("right" if self.right else "wrong") + (", but unsure" if unsure else "")

    def summary(self) -> dict[str, Any]:
        best = self.answer.hits[0]
        return {
            "question": self.question.title,
            "best": best.id,
            "probability": best.probability,
            "box": best.box,
            "overlap": overlap(best.box, self.question.box) if self.question.box else None,
            "right": self.right,
        }


def _campus(number: int) -> tuple[str, ...]:
    """Neighbouring frames of the walk show the same place."""
    return tuple(f"campus/P1070{frame}.png" for frame in range(number - 2, number + 3) if frame != number)


QUESTIONS = (
    Question("The same place on a campus walk, 1", "campus/holdout/P1070492.png", _campus(492)),
    Question("The same place on a campus walk, 2", "campus/holdout/P1070502.png", _campus(502)),
    Question("The same place on a campus walk, 3", "campus/holdout/P1070508.png", _campus(508)),
    Question("The same place on a campus walk, 4", "campus/holdout/P1070511.png", _campus(511)),
    Question("The same place on a campus walk, 5", "campus/holdout/P1070513.png", _campus(513)),
    Question("The Eiffel Tower, from further away", "eiffel-1.png", ("eiffel-2.png",)),
    Question("A building, from another street corner", "building2-1.png", ("building2-2.png", "building2-3.png")),
    Question("One figure in a crowd, turned and enlarged", "wheres-wally.png", ("wheres-wally.png",), FIGURE),
    Question("A church that is not among them", "church.png", ()),
)


def find_photos() -> Path:
    try:
        return Path(str(resources.files("mvtbdata") / "images"))
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "the photographs of the demo are not installed",
            expected="the Python package mvtb-data",
            actual=str(error),
            fix=install_extra("demo"),
        ) from error


def gather_photos(photos: Path) -> list["ImageRef"]:
    """The images of the collection: all photographs but the queries, and the church's other file."""
    from resight.data.folder_walk import walk
    from resight.types import Skipped

    asked = {question.query for question in QUESTIONS if question.box is None} | {"church.jpg"}
    refs = (ref for ref in walk(photos) if not isinstance(ref, Skipped))
    return [ref for ref in refs if ref.id not in asked and not any(part in ref.id for part in LEFT_OUT)]


def ask_questions(collection: "Collection", photos: Path, scratch: Path) -> Iterator[Outcome]:
    for question in QUESTIONS:
        image = photos / question.query
        if question.box is not None:
            image = photograph_again(image, question.box, scratch / "figure.jpg")
        yield Outcome(question, image, collection.ask(image, k=5))


def photograph_again(source: Path, box: "Box", target: Path) -> Path:
    """Writes the part inside the box, rotated by 10°, enlarged 1.5 times, blurred and compressed, like a new photo."""
    import cv2

    from resight.boxes import crop
    from resight.data import image_files
    from resight.types import ImageRef

    part = crop(image_files.read(ImageRef(source.name, source)), box).pixels
    height, width = part.shape[:2]
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), 10, 1.5)
    turn[:, 2] += (0.25 * width, 0.25 * height)
    size = (round(1.5 * width), round(1.5 * height))
    view = cv2.warpAffine(part, turn, size, flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT)
    view = cv2.GaussianBlur(view, (0, 0), 0.7)
    cv2.imwrite(str(target), cv2.cvtColor(view, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 70])
    return target


def overlap(found: "Box | None", truth: "Box") -> float:
    """Intersection over union; 0 without a box."""
    import numpy as np

    from resight.boxes import iou

    if found is None:
        return 0.0
    return float(iou(np.array([found]), np.array([truth]))[0])
