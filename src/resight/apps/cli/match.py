"""`resight match`: the same objects in two collections."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json

if TYPE_CHECKING:
    from resight.evaluate.match_quality import Quality


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
    import resight

    found = resight.match(
        a,
        b,
        one_to_one=one_to_one,
        mutual=mutual,
        within=within,
        diameter_ratio=diameter_ratio,
        least=least,
        candidates=candidates,
        by=by,
        truth=truth,
        out=out,
        html=html,
        review=review,
        progress=terminal.progress,
    )
    report, alone = found.report, found.unmatched
    if json:
        summary = {"matched": len(found), "unmatched": alone, "skipped": report.skipped}
        measured = {"quality": found.quality} if found.quality else {}
        return terminal.print_json({"a": a, "b": b, **summary, "out": out, **measured})
    terminal.print_skipped(report.skipped)
    what = "craters" if report.craters else "images"
    terminal.echo(f"{out}: {len(found):,} of {len(report.matches):,} {what} of {a} have a match in {b}")
    if found.quality:
        print_quality(found.quality)
    for name in alone[: terminal.SHOWN]:
        terminal.echo(f"no match: {terminal.clean(name)}")
    if len(alone) > terminal.SHOWN:
        terminal.echo(f"… and {len(alone) - terminal.SHOWN:,} more; {out} lists them with an empty b")
    return None


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
