"""`resight match`: the same objects in two collections."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json
from resight.errors import InputError

if TYPE_CHECKING:
    from resight.audit.match.find_matches import MatchReport
    from resight.evaluate.match_quality import Outcome, Quality


def match(
    a: Annotated[Path, typer.Argument(help="The collection whose images to look for.")],
    b: Annotated[Path, typer.Argument(help="The collection to search.")],
    out: Annotated[Path, typer.Option(help="The file for the matches (.csv): a, b, probability, box in b, inliers …")],
    one_to_one: Annotated[
        bool, typer.Option("--one-to-one", help="Match each image of B at most once, for the best total.")
    ] = False,
    mutual: Annotated[
        bool, typer.Option("--mutual", help="Search in both directions; keep pairs that are each other's best.")
    ] = False,
    within: Annotated[
        str | None, typer.Option(metavar="DISTANCE", help="Consider only pairs this near each other, e.g. 30km.")
    ] = None,
    diameter_ratio: Annotated[
        float | None, typer.Option(min=1, metavar="RATIO", help="Consider only craters of about the same diameter.")
    ] = None,
    least: Annotated[float, typer.Option(min=0, max=1, help="Minimum probability of a match.")] = 0.5,
    candidates: Annotated[int, typer.Option(min=1, help="Candidates in B per image of A.")] = 5,
    by: Annotated[
        str,
        typer.Option(
            metavar="ENTRY", help="crater: all crops of a label together; image. auto: crater if every image is a crop."
        ),
    ] = "auto",
    review: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write a review of the pairs, to vote on, doubtful ones first."),
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page that shows the pairs.")] = None,
    truth: Annotated[
        bool, typer.Option("--truth", help="Equal labels are the same object: measure precision, recall, calibration.")
    ] = False,
    json: Json = False,
) -> None:
    """Find the same objects in two collections.

    Lists the best match in B of each image of A, and the images without one. To continue a stopped
    run, run it again with the same --out.
    """
    from resight.audit.match.find_matches import Settings, find_matches, parse_by
    from resight.audit.match.match_priors import Priors, parse_distance
    from resight.audit.match.match_table import write_matches
    from resight.collection import open_collection

    if out.is_dir():
        raise InputError(f"{out} is a folder", expected="the name of a file", fix="e.g. --out matches.csv")
    priors = Priors(parse_distance(within) if within else None, diameter_ratio)
    settings = Settings(one_to_one, mutual, least, candidates, priors, parse_by(by))
    one, two = open_collection(a, must_exist=True), open_collection(b, must_exist=True)
    work = out.with_name(f"{out.name}.work")
    work.mkdir(parents=True, exist_ok=True)
    with terminal.progress("matching") as bar:
        report = find_matches(one, two, settings, work=work, progress=_show_stages(bar))
    outcomes, quality = _measure(report) if truth else ([], None)
    write_matches(report.matches, out)
    if html:
        from resight.apps.match_page import render

        terminal.write_text(html, render(report, one, two, outcomes, quality))
    if review:
        from resight.audit.review.review import Review

        Review.create(review, f"{a.name} in {b.name}", one.path, two.path, report.doubtful)
    shutil.rmtree(work, ignore_errors=True)
    alone = [one.a for one in report.matches if not one.b]
    if json:
        summary = {"matched": len(report.matches) - len(alone), "unmatched": alone, "skipped": report.skipped}
        measured = {"quality": quality} if quality else {}
        return terminal.print_json({"a": a, "b": b, **summary, "out": out, **measured})
    terminal.print_skipped(report.skipped)
    what = "craters" if report.craters else "images"
    terminal.echo(
        f"{out}: {len(report.matches) - len(alone):,} of {len(report.matches):,} {what} of {a} have a match in {b}"
    )
    if quality:
        print_quality(quality)
    for name in alone[: terminal.SHOWN]:
        terminal.echo(f"no match: {terminal.clean(name)}")
    if len(alone) > terminal.SHOWN:
        terminal.echo(f"… and {len(alone) - terminal.SHOWN:,} more; {out} lists them with an empty b")
    return None


def _measure(report: "MatchReport") -> "tuple[list[Outcome], Quality]":
    from resight.audit.match.find_matches import list_truths
    from resight.evaluate.match_quality import Outcome, measure_matches

    outcomes = [Outcome(*one) for one in list_truths(report)]
    return outcomes, measure_matches(outcomes, report.settings.least)


def print_quality(quality: "Quality") -> None:
    terminal.echo(
        f"by equal labels: {quality.right:,} of {quality.listed:,} matches are right, "
        f"precision {format_span(quality.precision, quality.precision_interval)}, "
        f"recall {format_span(quality.recall, quality.recall_interval)} of {quality.present:,} with a right answer"
    )
    terminal.echo(
        f"the best of each is right for {format_span(quality.best_right, quality.best_interval)}; "
        f"recall {quality.safe_recall:.3f} at precision 0.99, from a probability of {quality.safe_threshold:.3f} on"
    )
    terminal.echo(
        f"probabilities differ from frequencies by {quality.calibration_error:.3f} (expected calibration error)"
    )


def format_span(value: float, interval: tuple[float, float]) -> str:
    return f"{value:.3f} [{interval[0]:.3f}, {interval[1]:.3f}]"


def _show_stages(bar: terminal.Bar) -> Callable[[str, int, int], None]:
    """The progress of both directions in one bar."""
    shown = [""]

    def show(stage: str, done: int, total: int) -> None:
        if stage != shown[0]:
            shown[0] = stage
            bar.restart(stage)
        bar(done, total)

    return show
