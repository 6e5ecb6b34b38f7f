"""`resight dedup`: duplicates within one collection or between two."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json
from resight.errors import InputError

if TYPE_CHECKING:
    from resight.audit.circles.find_circles import CircleReport
    from resight.audit.dedup.find_duplicates import Report, Settings
    from resight.collection import Collection

KINDS, IMAGE, ALIGNMENT = "copy,near_copy,same", "image", "alignment"
WAYS = ("auto", "position", ALIGNMENT, IMAGE)
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
    way = _choose_way(by, one, two, kinds, merged)
    work = out.with_name(f"{out.name}.work")
    circles = None
    with terminal.progress("comparing") as bar:
        if way == IMAGE:
            report = find_duplicates(one, two, settings, work=work, progress=_show_stages(bar))
            write_pairs(report.pairs, out)
        else:
            circles = _compare_circles(way, one, two, settings, work, _show_stages(bar))
            report = circles.report
    if circles:
        from resight.audit.circles.circle_tables import write_circle_pairs

        write_circle_pairs(circles, out)
    rows = _merge(circles, one, two, merged) if circles and merged else None
    if html:
        from resight.audit.dedup.duplicates_page import render

        terminal.write_text(html, render(report, one, two or one))
    if review:
        from resight.audit.review.review import Review

        title = f"Duplicates in {collection.name}" + (f" and {against.name}" if against else "")
        Review.create(review, title, one.path, (two or one).path, [pair.uncorrected for pair in report.pairs])
    shutil.rmtree(work, ignore_errors=True)
    if json:
        summary = {"collection": collection, "out": out, "by": way, **summarise(report)}
        summary |= {"merged": merged, "rows": rows} if merged else {}
        return terminal.print_json({**summary, "correction": correction, "skipped": report.skipped})
    terminal.print_skipped(report.skipped)
    if circles:
        print_circles(out, circles)
    else:
        print_summary(out, report)
    if merged:
        terminal.echo(f"{merged}: {rows:,} craters, of {report.images:,} entries")
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


def _choose_way(by: str, one: "Collection", two: "Collection | None", kinds: str, merged: Path | None) -> str:
    """`auto` is the position if every image is a crop of a crater, and else the image."""
    from resight.audit.crater_entries import is_of_craters

    if by not in WAYS:
        raise InputError(
            "no such way to compare", expected=", ".join(WAYS), actual=by, fix="e.g. --by position, or leave it out"
        )
    placed = all(is_of_craters(some.records()) for some in (one, two) if some is not None)
    if by == "auto":
        by = "position" if placed else IMAGE
    if merged and (by == IMAGE or not placed):
        raise InputError(
            "only a catalogue of craters can be merged",
            expected="crops of craters, with crater_lat, crater_lon and diameter_km on every image",
            actual="a comparison of images" if placed else "images without them",
            fix="leave out --merged, or index the crops with `resight craters`",
        )
    if by != IMAGE and kinds != KINDS:
        raise InputError(
            "circles of craters have no kinds",
            expected="pairs whose circles coincide",
            actual=f"--kinds {kinds}",
            fix="leave out --kinds, or compare the pictures with --by image",
        )
    return by


def _compare_circles(
    way: str,
    one: "Collection",
    two: "Collection | None",
    settings: "Settings",
    work: Path,
    progress: Callable[[str, int, int], None],
) -> "CircleReport":
    from resight.audit.circles.find_circles import find_circles

    work.mkdir(parents=True, exist_ok=True)
    return find_circles(
        one, two, settings, by="alignment" if way == ALIGNMENT else "position", work=work, progress=progress
    )


def _merge(circles: "CircleReport", one: "Collection", two: "Collection | None", merged: Path) -> int:
    from resight.audit.circles.circle_tables import write_merged
    from resight.audit.crater_entries import list_entries

    entries = circles.entries or [
        entry for some in (one, two) if some is not None for entry in list_entries(some.records())
    ]
    return write_merged(circles, entries, merged)


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
