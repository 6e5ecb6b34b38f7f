"""`resight dedup`, `resight match` and `resight lookalikes`: the same or similar images of one or two collections."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json
from resight.errors import InputError

if TYPE_CHECKING:
    from resight.audit.dedup.find_duplicates import Report

KEEP_RULE = "keep: most pixels, then largest file, then oldest, then first id"


def dedup(
    collection: Annotated[Path, typer.Argument(help="The collection.")],
    out: Annotated[Path, typer.Option(help="The file for the pairs (.csv): a, b, kind, probability, group, keep.")],
    against: Annotated[
        Path | None, typer.Option(metavar="OTHER", help="Only pairs of one image from each of the two collections.")
    ] = None,
    kinds: Annotated[str, typer.Option(help="The kinds of pairs to find.")] = "copy,near_copy,same",
    least: Annotated[float, typer.Option(min=0, max=1, help="Minimum probability of a pair.")] = 0.5,
    false_alarms: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            metavar="RATE",
            help="Keep the expected share of wrong pairs, exact copies aside, below this.",
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page that shows the groups.")] = None,
    review: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write a review of the pairs, to vote on; its correction.json is applied."),
    ] = None,
    json: Json = False,
) -> None:
    """Find duplicate images.

    Lists exact copies, near copies, and other views of the same object. Removes nothing. To continue
    a stopped run, run it again with the same --out.
    """
    from resight.audit.dedup.find_duplicates import Settings, find_duplicates
    from resight.audit.dedup.pairs import parse_kinds, write_pairs
    from resight.audit.review.recalibration import CORRECTION, load_correction
    from resight.collection import open_collection

    if review:
        _check_review(review)
    correction = load_correction(review / CORRECTION) if review else None
    settings = Settings(parse_kinds(kinds), least, false_alarms, correct=correction.correct if correction else None)
    if out.is_dir():
        raise InputError(f"{out} is a folder", expected="the name of a file", fix="e.g. --out pairs.csv")
    one = open_collection(collection, must_exist=True)
    two = open_collection(against, must_exist=True) if against else None
    work = out.with_name(f"{out.name}.work")
    with terminal.progress("comparing") as bar:
        report = find_duplicates(one, two, settings, work=work, progress=_show_stages(bar))
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
        summary = {"collection": collection, "out": out, **summarise(report)}
        return terminal.print_json({**summary, "correction": correction, "skipped": report.skipped})
    terminal.print_skipped(report.skipped)
    print_summary(out, report)
    if review and correction:
        terminal.echo(f"probabilities corrected by votes on {correction.pairs:,} pairs ({review / CORRECTION})")
    return None


def _check_review(folder: Path) -> None:
    """Refuses, before the work, a folder that holds the review of an audit."""
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


def _show_stages(bar: terminal.Bar) -> Callable[[str, int, int], None]:
    """The progress of consecutive stages in one bar."""
    shown = [""]

    def show(stage: str, done: int, total: int) -> None:
        if stage != shown[0]:
            shown[0] = stage
            bar.restart(stage)
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
    terminal.echo(
        f"{out}: {len(report.pairs):,} pairs{f' ({parts})' if parts else ''} in {report.groups:,} groups; {KEEP_RULE}"
    )
    terminal.echo(f"of {report.images:,} images, {report.candidates:,} candidate pairs verified")
    if report.doubtful:
        share = f"about {100 * report.false_alarm_rate:.3g} %"
        terminal.echo(f"{share} of the {report.doubtful:,} pairs that are not exact copies may be wrong")
    if report.blank:
        terminal.echo(f"{report.blank:,} blank or unreadable images were checked for exact copies only")


def match(
    a: Annotated[Path, typer.Argument(help="The collection whose images to look for.")],
    b: Annotated[Path, typer.Argument(help="The collection to search.")],
    out: Annotated[Path, typer.Option(help="The file for the matches (.csv): a, b, probability, box in b, inliers.")],
    one_to_one: Annotated[
        bool, typer.Option("--one-to-one", help="Match each image of B at most once, for the best total.")
    ] = False,
    least: Annotated[float, typer.Option(min=0, max=1, help="Minimum probability of a match.")] = 0.5,
    candidates: Annotated[int, typer.Option(min=1, help="Candidates in B per image of A.")] = 5,
    json: Json = False,
) -> None:
    """Find the same objects in two collections.

    Lists the best match in B of each image of A, and the images without one.
    """
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
    terminal.echo(f"{out}: {len(found) - len(alone):,} of {len(found):,} images of {a} have a match in {b}")
    for name in alone[: terminal.SHOWN]:
        terminal.echo(f"no match: {terminal.clean(name)}")
    if len(alone) > terminal.SHOWN:
        terminal.echo(f"… and {len(alone) - terminal.SHOWN:,} more; {out} lists them with an empty b")
    return None


def lookalikes(
    collection: Annotated[Path, typer.Argument(help="The collection.")],
    image: Annotated[Path, typer.Argument(help="The image to compare with.")],
    k: Annotated[int, typer.Option("-k", min=1, help="Number of answers.")] = 10,
    diversity: Annotated[
        float, typer.Option(min=0, max=1, help="0: the most similar; towards 1: more different from each other.")
    ] = 0.3,
    json: Json = False,
) -> None:
    """Find similar but different objects.

    Lists the nearest images that do not show the very same object.
    """
    from resight.audit.lookalikes import find_lookalikes
    from resight.collection import open_collection

    found = find_lookalikes(open_collection(collection, must_exist=True), image, k, diversity=diversity)
    if json:
        return terminal.print_json({"query": image, "analogues": found})
    if not found:
        terminal.echo("nothing found: the collection is empty, or every near image shows the very same object")
        return None
    rows = [
        [str(rank), one.id, f"{one.similarity:.3f}", "–" if one.probability is None else f"{one.probability:.1%}"]
        for rank, one in enumerate(found, start=1)
    ]
    columns = ("", "image", "similarity", "same object")
    terminal.print_table(f"similar to {image.name} in {collection}", columns, rows, (0, 2, 3))
    return None
