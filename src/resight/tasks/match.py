"""`resight.match(...)`: the same objects in two collections. `resight match` calls it too.

In: two collections. Out: Matches, and the files that were asked for: matches, page, review.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from resight.audit.match.find_matches import Matched, MatchReport, Settings, find_matches, list_truths, parse_by
from resight.audit.match.match_priors import Priors, parse_distance
from resight.audit.match.match_table import write_matches
from resight.audit.review.review import Review
from resight.collection import Collection
from resight.errors import InputError
from resight.evaluate.match_quality import Outcome, Quality, measure_matches
from resight.files.atomic import write_atomic
from resight.frames import make_frame
from resight.progress import OpenBar, in_stages, open_bar
from resight.tasks import check_number, keep_work, open_existing

COLUMNS = ("a", "b", "probability", "box", "inliers", "runner_up", "runner_up_probability")


@dataclass(frozen=True)
class Matches:
    """The best match in B of each image of A; `resight.match` returns it. `len()` counts the matches.

    Attributes:
        report: Every image of A with its match, and how they were compared.
        outcomes: Whether each match is right, if the truth is known.
        quality: Precision, recall and calibration, if the truth is known.
        collections: A and B.
    """

    report: MatchReport
    outcomes: tuple[Outcome, ...] = ()
    quality: Quality | None = None
    collections: tuple[Collection, Collection] | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Matched]:
        return iter(self.found)

    @property
    def found(self) -> tuple[Matched, ...]:
        """The images of A with a match, in the order of A."""
        return tuple(one for one in self.report.matches if one.b)

    @property
    def unmatched(self) -> tuple[str, ...]:
        """The images of A without a match."""
        return tuple(one.a for one in self.report.matches if not one.b)

    def to_frame(self) -> Any:
        """Convert to a data frame of pandas, or of polars if only that is installed.

        Returns:
            One row per image of A; b is empty without a match.
        """
        return make_frame({name: [getattr(one, name) for one in self.report.matches] for name in COLUMNS})


def match(
    a: Collection | str | Path,
    b: Collection | str | Path,
    *,
    one_to_one: bool = False,
    mutual: bool = False,
    within: str | float | None = None,
    diameter_ratio: float | None = None,
    least: float = 0.5,
    candidates: int = 5,
    by: str = "auto",
    truth: bool = False,
    out: str | Path | None = None,
    html: str | Path | None = None,
    review: str | Path | None = None,
    progress: bool | OpenBar = True,
) -> Matches:
    """Find the same objects in two collections: the best match in B of each image of A.

    Args:
        a: The collection whose images to look for, or its path.
        b: The collection to search, or its path.
        one_to_one: Match each image of B at most once, for the best total.
        mutual: Search in both directions; keep pairs that are each other's best.
        within: Consider only pairs this near each other, in kilometres or as "500m".
        diameter_ratio: Consider only craters of about the same diameter.
        least: Minimum probability of a match.
        candidates: Candidates in B per image of A.
        by: "crater": all crops of a label together; "image"; "auto": crater if every image is a crop of one.
        truth: Equal labels are the same object: measure precision, recall and calibration.
        out: Write the matches to this CSV file; a run that was stopped continues if it has the same `out`.
        html: Write a page that shows the pairs.
        review: A folder for a review of the pairs, to vote on, doubtful ones first.
        progress: Show a bar in a notebook; False: none.

    Returns:
        The matches, and the images without one.

    Raises:
        InputError: A distance, a ratio or `by` cannot be used, or nothing can be measured by labels.
        SpaceMismatch: The two collections encode images in different ways.

    Examples:
        >>> import resight
        >>> queries, photos = resight.open("queries.resight", "tokens"), resight.open("tokens.resight", "tokens")
        >>> queries.add("query.jpg").added, photos.add("photos/").added
        (1, 10)
        >>> matches = resight.match(queries, photos, least=0)
        >>> [(one.a, one.b) for one in matches]
        [('query.jpg', 'eiffel-2.png')]
    """
    check_number("least", least, 0, 1)
    check_number("candidates", candidates, 1, whole=True)
    file = None if out is None else Path(out)
    if file and file.is_dir():
        raise InputError(f"{file} is a folder", expected="the name of a file", fix="e.g. --out matches.csv")
    distance = parse_distance(within) if isinstance(within, str) else within
    settings = Settings(one_to_one, mutual, least, candidates, Priors(distance, diameter_ratio), parse_by(by))
    one, two = open_existing(a), open_existing(b)
    with open_bar(progress, "matching") as bar, keep_work(file) as work:
        report = find_matches(one, two, settings, work=work, progress=in_stages(bar))
        outcomes = tuple(Outcome(*known) for known in list_truths(report)) if truth else ()
        quality = measure_matches(outcomes, report.settings.least) if truth else None
        if file:
            write_matches(report.matches, file)
        if html:
            from resight.tasks.match_page import render

            with write_atomic(Path(html)) as temporary:
                page = render(report, one, two, outcomes, quality)
                temporary.write_text(page, encoding="utf-8", errors="backslashreplace")
        if review:
            Review.create(Path(review), f"{one.path.name} in {two.path.name}", one.path, two.path, report.doubtful)
    return Matches(report, outcomes, quality, (one, two))
