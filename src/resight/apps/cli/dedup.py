"""`resight dedup`: duplicates within one collection or between two."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json

if TYPE_CHECKING:
    from resight.audit.circles.find_circles import CircleReport
    from resight.audit.dedup.find_duplicates import Report

KINDS = "copy,near_copy,same"
KEEP_RULE = "keep: most pixels, then largest file, then oldest, then first id"


def dedup(
    collection: Annotated[Path, typer.Argument(help="The collection.")],
    out: Annotated[Path, typer.Option(help="The file for the pairs (.csv): a, b, kind, probability, group, keep.")],
    against: Annotated[
        Path | None, typer.Option(metavar="OTHER", help="Only pairs of one image from each of the two collections.")
    ] = None,
    kinds: Annotated[str, typer.Option(help="The kinds of pairs to find.")] = KINDS,
    by: Annotated[
        str,
        typer.Option(
            metavar="WAY",
            help="position, alignment: crater circles that coincide, by their coordinates or in their crops; "
            "image: pictures. auto: position if every image has one as a crater.",
        ),
    ] = "auto",
    merged: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the crater catalogue with one row per crater (.csv); not for images."),
    ] = None,
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

    Lists exact copies, near copies, and other views of the same object; of crops of craters, the
    entries whose circles coincide. Removes nothing. To continue a stopped run, run it again with the
    same --out.
    """
    import resight

    found = resight.dedup(
        collection,
        against,
        kinds=kinds,
        by=cast(Any, by),
        least=least,
        false_alarms=false_alarms,
        out=out,
        merged=merged,
        html=html,
        review=review,
        progress=terminal.progress,
    )
    report = found.report
    if json:
        summary = {"collection": collection, "out": out, "by": found.by, **summarise(report)}
        summary |= {"merged": merged, "rows": found.merged} if merged else {}
        return terminal.print_json({**summary, "correction": found.correction, "skipped": report.skipped})
    terminal.print_skipped(report.skipped)
    if found.circles:
        print_circles(out, found.circles)
    else:
        print_summary(out, report)
    if merged:
        terminal.echo(f"{merged}: {found.merged:,} craters, of {report.images:,} entries")
    if review and found.correction:
        file = review / "correction.json"
        terminal.echo(f"probabilities corrected by votes on {found.correction.pairs:,} pairs ({file})")
    return None


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


def print_circles(out: Path, circles: "CircleReport") -> None:
    report = circles.report
    how = {
        "position": "compared by position and diameter, because every image is a crop of a crater; --by image compares "
        "the pictures",
        "alignment": "compared by their circles in the aligned crops; positions were not used",
    }[circles.by]
    terminal.echo(
        f"{out}: {len(report.pairs):,} pairs in {report.groups:,} groups; "
        "keep: the entry that agrees best with its group"
    )
    terminal.echo(f"of {report.images:,} craters, {how}")
    if report.pairs:
        terminal.echo(f"about {100 * report.false_alarm_rate:.3g} % of the pairs may be wrong")
