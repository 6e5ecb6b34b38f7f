"""`resight.dedup(...)`: duplicates within one collection or between two. `resight dedup` calls it too.

In: a collection, or two. Out: Duplicates, and the files that were asked for: pairs, merged catalogue, page, review.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast, get_args

from resight.audit.circles.circle_tables import write_circle_pairs, write_merged
from resight.audit.circles.find_circles import CircleReport, find_circles
from resight.audit.crater_entries import is_of_craters, list_entries
from resight.audit.dedup.apply_groups import Applied, apply_groups
from resight.audit.dedup.find_duplicates import Report, Settings, find_duplicates
from resight.audit.dedup.pairs import COLUMNS, KINDS, Pair, parse_kinds, write_pairs
from resight.audit.review.recalibration import CORRECTION, Correction, load_correction
from resight.audit.review.review import CALIBRATION, Review, has_settings, read_settings
from resight.collection import Collection
from resight.errors import InputError
from resight.files.atomic import write_atomic
from resight.frames import make_frame
from resight.progress import OpenBar, in_stages, open_bar
from resight.tasks import check_number, keep_work, open_existing

Way = Literal["auto", "position", "alignment", "image"]
IMAGE, ALIGNMENT = "image", "alignment"


@dataclass(frozen=True)
class Duplicates:
    """Pairs of images that show the same object; `resight.dedup` returns it. `len()` counts the pairs.

    Attributes:
        by: How images were compared: image, position or alignment.
        report: The pairs, and how many images and candidates were compared.
        circles: The circles of craters, if these were compared.
        merged: Number of rows of the merged catalogue; None: not written.
        correction: The correction by votes that was applied.
        collections: The collections of the pairs' a and b.
    """

    by: str
    report: Report
    circles: CircleReport | None = None
    merged: int | None = None
    correction: Correction | None = None
    collections: tuple[Collection, Collection] | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.report.pairs)

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.report.pairs)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The pairs by group, then by probability; those in no group last."""
        return self.report.pairs

    @property
    def groups(self) -> dict[int, tuple[str, ...]]:
        """Group → the ids in it, the one to keep first."""
        members: dict[int, dict[str, None]] = {}
        for pair in self.pairs:
            if pair.group is not None:
                members.setdefault(pair.group, {pair.keep: None}).update({pair.a: None, pair.b: None})
        return {group: tuple(ids) for group, ids in members.items()}

    def apply(
        self,
        action: Literal["move", "delete"],
        to: str | Path | None = None,
        *,
        undo_list: str | Path | None = None,
    ) -> Applied:
        """Take the copies and near copies out: of each group, all but the image to keep.

        Args:
            action: "move" moves their files into the folder `to`. "delete" deletes files that have the very same bytes
                as the image to keep, and leaves the others.
            to: The folder for moved files.
            undo_list: Write what is done to this file; default: a new one beside the collection.

        Returns:
            What was removed, what was skipped and why, and the list by which `Applied.undo` goes back.

        Raises:
            InputError: Circles of craters were compared, the list exists, or the folder is missing.
        """
        if self.collections is None or self.by != IMAGE:
            raise InputError(
                "only duplicate files can be taken out",
                expected="a comparison of images",
                actual=f"one by {self.by}",
                fix="--by image, or --merged for a catalogue with one row per crater",
            )
        folder, listed = (None if path is None else Path(path) for path in (to, undo_list))
        return apply_groups(self.pairs, self.collections, action, listed, folder)

    def to_frame(self) -> Any:
        """Convert to a data frame of pandas, or of polars if only that is installed.

        Returns:
            One row per pair: a, b, kind, probability, group and keep.
        """
        return make_frame({name: [getattr(pair, name) for pair in self.pairs] for name in COLUMNS})


def dedup(
    collection: Collection | str | Path,
    against: Collection | str | Path | None = None,
    *,
    kinds: str | Sequence[str] = KINDS,
    by: Way = "auto",
    least: float = 0.5,
    false_alarms: float | None = None,
    out: str | Path | None = None,
    merged: str | Path | None = None,
    html: str | Path | None = None,
    review: str | Path | None = None,
    progress: bool | OpenBar = True,
) -> Duplicates:
    """Find duplicates: exact copies, near copies, and other views of the same object. Removes nothing; `apply` does.

    Args:
        collection: The collection, or its path.
        against: Only pairs of one image from each of the two collections.
        kinds: The kinds of pairs to find: copy, near_copy, same.
        by: "position" and "alignment" compare the circles of craters, by their coordinates or in their crops;
            "image" compares pictures; "auto": position if every image has one as a crater.
        least: Minimum probability of a pair.
        false_alarms: Keep the expected share of wrong pairs, exact copies aside, below this.
        out: Write the pairs to this CSV file; a run that was stopped continues if it has the same `out`.
        merged: Write the crater catalogue with one row per crater to this CSV file.
        html: Write a page that shows the groups.
        review: A folder for a review of the pairs, to vote on; its correction.json is applied.
        progress: Show a bar in a notebook; False: none.

    Returns:
        The pairs, their groups, and which image of each group to keep.

    Raises:
        InputError: The options contradict each other.
        SpaceMismatch: The two collections encode images in different ways.

    Examples:
        >>> import resight
        >>> import shutil
        >>> path = shutil.copy("photos/castle.png", "photos/castle-copy.png")
        >>> photos = resight.open("photos.resight")
        >>> photos.add("photos/").added
        1
        >>> found = resight.dedup(photos, kinds=["copy"])
        >>> [(pair.a, pair.b, pair.kind) for pair in found]
        [('castle.png', 'castle-copy.png', 'copy')]
        >>> found.groups
        {1: ('castle.png', 'castle-copy.png')}
        >>> applied = found.apply("move", "duplicates/")
        >>> len(photos), applied.undo(), len(photos)
        (10, 1, 11)
    """
    check_number("least", least, 0, 1)
    if false_alarms is not None:
        check_number("false_alarms", false_alarms, 0, 1)
    folder, file = (None if path is None else Path(path) for path in (review, out))
    if folder:
        _check_review(folder)
    correction = load_correction(folder / CORRECTION) if folder else None
    wanted = parse_kinds(kinds if isinstance(kinds, str) else ",".join(kinds))
    settings = Settings(wanted, least, false_alarms, correct=correction.correct if correction else None)
    if file and file.is_dir():
        raise InputError(f"{file} is a folder", expected="the name of a file", fix="e.g. --out pairs.csv")
    one = open_existing(collection)
    two = None if against is None else open_existing(against)
    way = _choose_way(by, one, two, wanted, merged)
    circles = None
    with open_bar(progress, "comparing") as bar, keep_work(file) as work:
        if way == IMAGE:
            report = find_duplicates(one, two, settings, work=work, progress=in_stages(bar))
        else:
            circles = _compare_circles(way, one, two, settings, work, in_stages(bar))
            report = circles.report
        if file:
            write_circle_pairs(circles, file) if circles else write_pairs(report.pairs, file)
        rows = _merge(circles, one, two, Path(merged)) if circles and merged else None
        if html:
            from resight.audit.dedup.duplicates_page import render

            with write_atomic(Path(html)) as temporary:
                temporary.write_text(render(report, one, two or one), encoding="utf-8", errors="backslashreplace")
        if folder:
            title = f"Duplicates in {one.path.name}" + (f" and {two.path.name}" if two else "")
            Review.create(folder, title, one.path, (two or one).path, [pair.uncorrected for pair in report.pairs])
    return Duplicates(way, report, circles, rows, correction, (one, two or one))


def _check_review(folder: Path) -> None:
    """Refuses, before the work, a folder that holds the review of an audit."""
    if has_settings(folder):
        read_settings(folder)
    if (folder / CALIBRATION).exists():
        raise InputError(
            f"{folder} is the review of an audit",
            expected="a new folder, or one that `resight dedup --review` made",
            actual=f"a folder with {CALIBRATION}",
            fix="choose another folder",
        )


def _choose_way(
    by: str, one: Collection, two: Collection | None, kinds: frozenset[str], merged: str | Path | None
) -> Way:
    """`auto` is the position if every image is a crop of a crater, and else the image."""
    if by not in get_args(Way):
        raise InputError(
            "no such way to compare",
            expected=", ".join(get_args(Way)),
            actual=by,
            fix="e.g. --by position, or leave it out",
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
    if by != IMAGE and kinds != frozenset(KINDS):
        raise InputError(
            "circles of craters have no kinds",
            expected="pairs whose circles coincide",
            actual=f"--kinds {','.join(sorted(kinds))}",
            fix="leave out --kinds, or compare the pictures with --by image",
        )
    return cast(Way, by)


def _compare_circles(
    way: str,
    one: Collection,
    two: Collection | None,
    settings: Settings,
    work: Path,
    progress: Callable[[str, int, int], None],
) -> CircleReport:
    work.mkdir(parents=True, exist_ok=True)
    return find_circles(
        one, two, settings, by="alignment" if way == ALIGNMENT else "position", work=work, progress=progress
    )


def _merge(circles: CircleReport, one: Collection, two: Collection | None, merged: Path) -> int:
    entries = circles.entries or [
        entry for some in (one, two) if some is not None for entry in list_entries(some.records())
    ]
    return write_merged(circles, entries, merged)
