"""`resight dedup`: duplicates within one collection or between two."""

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json, refuse_swapped
from resight.errors import InputError
from resight.probability_words import format_probability

if TYPE_CHECKING:
    from resight.audit.circles.find_circles import CircleReport
    from resight.audit.dedup.apply_groups import Applied
    from resight.audit.dedup.find_duplicates import Report
    from resight.audit.dedup.pairs import Pair
    from resight.tasks.dedup import Duplicates

KINDS, SAFE = "copy,near_copy,same", "copy,near_copy"
GROUPS, MEMBERS = 20, 5  # to print
KEEP_RULE = "keep: most pixels, then largest file, then oldest, then first id"


class Way(Enum):
    move = "move"
    delete = "delete"


def dedup(
    collection: Annotated[Path | None, typer.Argument(help="The collection.", show_default=False)] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file for the pairs (.csv): a, b, kind, probability, group, keep.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(metavar="OTHER", help="Only pairs of one image from each of the two collections.")
    ] = None,
    kinds: Annotated[
        str | None, typer.Option(help="The kinds of pairs to find.", show_default=f"{KINDS}; with --apply {SAFE}")
    ] = None,
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
    apply: Annotated[
        Way | None,
        typer.Option(
            help="Take out all but one image of each group: move their files to the folder --to, or delete files with "
            "the very same bytes as the kept one."
        ),
    ] = None,
    to: Annotated[Path | None, typer.Option(metavar="FOLDER", help="With --apply move: the folder.")] = None,
    undo_list: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --apply: the list for --undo.", show_default="a new file beside the collection"
        ),
    ] = None,
    undo: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Bring back what --apply took out, by its list.")
    ] = None,
    json: Json = False,
) -> None:
    """Find duplicate images.

    Lists exact copies, near copies, and other views of the same object; of crops of craters, the
    entries whose circles coincide. Removes nothing without --apply. To continue a stopped run, run it
    again with the same --out.
    """
    import resight

    if undo is not None:
        return _undo(undo, json)
    if collection is None:
        raise InputError("there is no collection to look through", expected="COLLECTION, or --undo FILE", actual="none")
    if (to or undo_list) and apply is None:
        raise InputError("--to and --undo-list belong to --apply", expected="--apply move", actual="no --apply")
    refuse_swapped(collection, [str(against)] if against else [])
    found = resight.dedup(
        collection,
        against,
        kinds=kinds or (SAFE if apply and by in ("auto", "image") else KINDS),
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
    applied = found.apply(apply.value, to, undo_list=undo_list) if apply else None
    if json:
        summary = {"collection": collection, "out": out, "by": found.by, **summarise(report)}
        summary |= {"merged": merged, "rows": found.merged} if merged else {}
        summary |= {"members": found.groups} | ({"applied": applied} if applied else {})
        return terminal.print_json({**summary, "correction": found.correction, "skipped": report.skipped})
    terminal.print_skipped(report.skipped)
    print_groups(found)
    if found.circles:
        print_circles(out, found.circles)
    else:
        print_summary(out, report)
    if merged:
        terminal.echo(f"{merged}: {found.merged:,} craters, of {report.images:,} entries")
    if review and found.correction:
        file = review / "correction.json"
        terminal.echo(f"probabilities corrected by votes on {found.correction.pairs:,} pairs ({file})")
    if applied:
        _print_applied(applied, apply.value if apply else "")
    return None


def print_groups(found: "Duplicates") -> None:
    """The first groups, each with the image to keep and how sure the others are."""
    links: dict[str, Pair] = {}
    for pair in found.pairs:
        for name in (pair.a, pair.b):
            if pair.group is not None and (name not in links or pair.keep in (pair.a, pair.b)):
                links[name] = pair
    for number, members in list(found.groups.items())[:GROUPS]:
        terminal.echo(f"group {number}: keep {members[0]}")
        for name in members[1 : MEMBERS + 1]:
            pair = links[name]
            terminal.echo(f"  {pair.kind.replace('_', ' '):<9}  {format_probability(pair.probability):>5}  {name}")
        if len(members) > MEMBERS + 1:
            terminal.echo(f"  … and {len(members) - MEMBERS - 1:,} more")
    if len(found.groups) > GROUPS:
        terminal.echo(f"… and {len(found.groups) - GROUPS:,} more groups; --out and --html show all")


def _print_applied(applied: "Applied", action: str) -> None:
    terminal.print_skipped(applied.skipped)
    done = {"move": "moved", "delete": "deleted"}[action]
    terminal.echo(f"{done} {len(applied.removed):,} files, which left the collection; {len(applied.skipped):,} stayed")
    if applied.removed:
        terminal.echo(f"to undo: resight dedup --undo {applied.undo_list}")


def _undo(path: Path, json: bool) -> None:
    from resight.audit.dedup.apply_groups import undo as bring_back

    count, skipped = bring_back(path)
    if json:
        terminal.print_json({"returned": count, "skipped": skipped})
    else:
        terminal.print_skipped(skipped)
        terminal.echo(f"{count:,} files and images are back; {len(skipped):,} could not be brought back")
    if skipped:
        raise SystemExit(InputError.exit_code)


def name_out(out: Path | None) -> str:
    return f"{out}: " if out else ""


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


def print_summary(out: Path | None, report: "Report") -> None:
    kinds = summarise(report)["kinds"]
    assert isinstance(kinds, dict)
    parts = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in kinds.items())
    found = f"{len(report.pairs):,} pairs{f' ({parts})' if parts else ''} in {report.groups:,} groups"
    terminal.echo(f"{name_out(out)}{found}; {KEEP_RULE}")
    terminal.echo(f"of {report.images:,} images, {report.candidates:,} candidate pairs verified")
    if report.doubtful:
        share = f"about {100 * report.false_alarm_rate:.3g} %"
        terminal.echo(f"{share} of the {report.doubtful:,} pairs that are not exact copies may be wrong")
    if report.blank:
        terminal.echo(f"{report.blank:,} blank or unreadable images were checked for exact copies only")


def print_circles(out: Path | None, circles: "CircleReport") -> None:
    report = circles.report
    how = {
        "position": "compared by position and diameter, because every image is a crop of a crater; --by image compares "
        "the pictures",
        "alignment": "compared by their circles in the aligned crops; positions were not used",
    }[circles.by]
    terminal.echo(
        f"{name_out(out)}{len(report.pairs):,} pairs in {report.groups:,} groups; "
        "keep: the entry that agrees best with its group"
    )
    terminal.echo(f"of {report.images:,} craters, {how}")
    if report.pairs:
        terminal.echo(f"about {100 * report.false_alarm_rate:.3g} % of the pairs may be wrong")
