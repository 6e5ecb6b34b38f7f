"""`resight dedup`.

`resight match` and `resight analogues`.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.index import Json
from resight.errors import InputError

if TYPE_CHECKING:
    from resight.audit.dedup.find_duplicates import Report


RULE = "kept: most pixels, then the largest file, then the oldest, then the first by id"


def dedup(
    collection: Annotated[Path, typer.Argument(help="The collection.")],
    out: Annotated[Path, typer.Option(help="Where the pairs go (.csv): a, b, kind, probability, group, keep.")],
    against: Annotated[
        Path | None, typer.Option(metavar="OTHER", help="Only pairs of an image of it and one of this collection.")
    ] = None,
    kinds: Annotated[str, typer.Option(help="Which pairs.")] = "copy,near_copy,same",
    least: Annotated[float, typer.Option(min=0, max=1, help="The least probability of a pair.")] = 0.5,
    false_alarms: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            metavar="RATE",
            help="At most this share of those that are no exact copies is wrong, as expected.",
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page that shows the groups.")] = None,
    review: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Make a review of the pairs, to vote on; its correction.json is applied."),
    ] = None,
    json: Json = False,
) -> None:
    """Find images that are there twice: exact copies, near copies, and other views of the same thing.

    Nothing is removed. A run that was stopped goes on where it was when it is started again with the same --out.
    """
    from resight.audit.dedup.find_duplicates import Settings, find_duplicates
    from resight.audit.dedup.pairs import parse_kinds, write_pairs
    from resight.audit.review.recalibration import CORRECTION, load_correction
    from resight.collection import open_collection

    if review:
        _check_review(review)
    correction = load_correction(review / CORRECTION) if review else None
    settings = Settings(parse_kinds(kinds), least, false_alarms, correction=correction)
    if out.is_dir():
        raise InputError(f"{out} is a folder", expected="the name of a file", fix="e.g. --out pairs.csv")
    one = open_collection(collection, must_exist=True)
    two = open_collection(against, must_exist=True) if against else None
    work = out.with_name(f"{out.name}.work")
    with terminal.progress("looking") as bar:
        report = find_duplicates(one, two, settings, work=work, progress=_show(bar))
    write_pairs(report.pairs, out)
    if html:
        from resight.audit.dedup.duplicates_page import render

        terminal.write_text(html, render(report, one, two or one))
    if review:
        from resight.audit.review.review import Review

        title = f"Duplicates in {collection.name}" + (f" and {against.name}" if against else "")
        Review.create(review, title, one.path, (two or one).path, [pair.uncorrected for pair in report.pairs])
    shutil.rmtree(work, ignore_errors=True)
    if json:
        told = {"collection": collection, "out": out, **summarise(report)}
        return terminal.print_json({**told, "correction": correction, "skipped": report.skipped})
    terminal.print_skipped(report.skipped)
    print_summary(out, report)
    if review and correction:
        print(f"probabilities are corrected by votes on {correction.pairs:,} pairs, as {review / CORRECTION} says")
    return None


def _check_review(folder: Path) -> None:
    """Before anything is looked for: that pairs and a correction of this folder, if it has any, are of duplicates."""
    from resight.audit.review.review import CALIBRATION, has_settings, read_settings

    if has_settings(folder):
        read_settings(folder)
    if (folder / CALIBRATION).exists():
        raise InputError(
            f"{folder} is the review of an audit",
            expected="a new folder, or one that `resight dedup --review` made",
            actual=f"a folder with {CALIBRATION}",
            fix="choose another folder",
        )


def _show(bar: terminal.Bar) -> Callable[[str, int, int], None]:
    """Progress of one stage after the other, in one bar."""
    shown = [""]

    def show(stage: str, done: int, total: int) -> None:
        if stage != shown[0]:
            shown[0] = stage
            bar.tell(stage)
        bar(done, total)

    return show


def summarise(report: "Report") -> dict[str, object]:
    kinds = [pair.kind for pair in report.pairs]
    return {
        "images": report.images,
        "pairs": len(report.pairs),
        "kinds": {kind: kinds.count(kind) for kind in sorted(set(kinds))},
        "groups": report.groups,
        "verified": report.candidates,
        "expected_wrong": report.expected_wrong,
        "false_alarm_rate": report.false_alarm_rate,
        "blank": report.blank,
    }


def print_summary(out: Path, report: "Report") -> None:
    kinds = summarise(report)["kinds"]
    assert isinstance(kinds, dict)
    parts = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in kinds.items())
    print(f"{out}: {len(report.pairs):,} pairs{f' ({parts})' if parts else ''} in {report.groups:,} groups; {RULE}")
    print(f"of {report.images:,} images, {report.candidates:,} candidate pairs verified")
    if report.doubtful:
        said = f"{report.expected_wrong:.1f} of the {report.doubtful:,} pairs that are no exact copies"
        print(f"expected to be wrong, by their probabilities: {said} ({report.false_alarm_rate:.2%})")
    if report.blank:
        print(f"{report.blank:,} images are blank or could not be read: of these only exact copies are listed")


def match(
    a: Annotated[Path, typer.Argument(help="The collection whose images are looked for.")],
    b: Annotated[Path, typer.Argument(help="The collection that they are looked for in.")],
    out: Annotated[Path, typer.Option(help="Where the matches go (.csv): a, b, probability, box in b, inliers.")],
    one_to_one: Annotated[
        bool, typer.Option("--one-to-one", help="Give each image of B to one of A at most, the best for all together.")
    ] = False,
    least: Annotated[float, typer.Option(min=0, max=1, help="The least probability of a match.")] = 0.5,
    candidates: Annotated[int, typer.Option(min=1, help="How many of B each of A may choose from.")] = 5,
    json: Json = False,
) -> None:
    """Find the same things in two collections: each image of A with its best match in B, and those that have none."""
    from resight.audit.match import match_collections, write_matches
    from resight.collection import open_collection

    one, two = open_collection(a, must_exist=True), open_collection(b, must_exist=True)
    with terminal.progress("matching") as bar:
        found = match_collections(one, two, one_to_one=one_to_one, least=least, candidates=candidates, progress=bar)
    write_matches(found, out)
    alone = [one.a for one in found if not one.b]
    skipped = [one.skipped for one in found if one.skipped]
    if json:
        matched = {"matched": len(found) - len(alone), "unmatched": alone, "skipped": skipped}
        return terminal.print_json({"a": a, "b": b, **matched, "out": out})
    terminal.print_skipped(skipped)
    print(f"{out}: {len(found) - len(alone):,} of {len(found):,} images of {a} have a match in {b}")
    for name in alone[: terminal.SHOWN]:
        print(f"no match: {terminal.clean(name)}")
    if len(alone) > terminal.SHOWN:
        print(f"… and {len(alone) - terminal.SHOWN:,} more, which {out} lists without b")
    return None


def analogues(
    collection: Annotated[Path, typer.Argument(help="The collection.")],
    image: Annotated[Path, typer.Argument(help="The image that others are to be like.")],
    k: Annotated[int, typer.Option("-k", min=1, help="How many.")] = 10,
    diversity: Annotated[
        float, typer.Option(min=0, max=1, help="0: the nearest; towards 1: rather unlike each other.")
    ] = 0.3,
    json: Json = False,
) -> None:
    """Find things that are like this one and are not it: neighbours without those that show the very same thing."""
    from resight.audit.lookalikes import find_analogues
    from resight.collection import open_collection

    found = find_analogues(open_collection(collection, must_exist=True), image, k, diversity=diversity)
    if json:
        return terminal.print_json({"query": image, "analogues": found})
    if not found:
        print("nothing found: the collection is empty, or all that is near shows the very same thing")
        return None
    rows = [
        [
            str(rank),
            one.id,
            f"{one.similarity:.3f}",
            "–" if one.probability is None else f"{one.probability:.1%}",
        ]
        for rank, one in enumerate(found, start=1)
    ]
    terminal.print_table(
        f"like {image.name} in {collection}", ("", "image", "similarity", "same thing"), rows, (0, 2, 3)
    )
    return None
