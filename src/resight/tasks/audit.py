"""`resight.audit(...)`: does a training set contain evaluation objects? `resight audit` calls it too."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resight import recipe as recipes
from resight.audit.leaks.find_leaks import LEAST, Audit, Rules, read_votes
from resight.audit.leaks.find_leaks import audit as find_leaks
from resight.audit.leaks.leak_report import describe_audit, list_evidence, summarise, write_audit
from resight.audit.leaks.sources import is_collection, open_source
from resight.audit.review.votes import Vote
from resight.collection import open_collection
from resight.data.truth_tables import read_lines
from resight.encode.feature_cache import FeatureCache
from resight.frames import make_frame
from resight.progress import OpenBar, open_bar
from resight.tasks import check_number
from resight.types import Recipe, Skipped


@dataclass(frozen=True)
class LeakAudit:
    """The result of `resight.audit`. `len()` counts the pairs.

    Attributes:
        audit: The pairs, the decisions, and the classes to remove.
        folder: The folder of the audit, which is also its review.
        skipped: Files that could not be read.
    """

    audit: Audit
    folder: Path
    skipped: tuple[Skipped, ...]

    def __len__(self) -> int:
        return len(self.audit.overlap.leaks)

    @property
    def removed(self) -> tuple[str, ...]:
        """Classes of the training set to remove, or images without a class."""
        return tuple(row.name for row in self.audit.removed)

    def describe(self) -> str:
        """Describe the audit.

        Returns:
            Tables and notes as Markdown.
        """
        return describe_audit(self.audit)

    def to_dict(self) -> dict[str, object]:
        """Convert to plain values, for JSON.

        Returns:
            Counts, tables and notes.
        """
        return summarise(self.audit)

    def to_frame(self) -> Any:
        """Convert to a data frame of pandas, or of polars if only that is installed.

        Returns:
            One row per pair, surest first, with the columns of evidence.csv.
        """
        return make_frame(list_evidence(self.audit))


def audit(
    train: str | Path,
    evaluation: str | Path,
    out: str | Path,
    *,
    k: int = 10,
    least: float = LEAST,
    texts: Sequence[str] | Path = (),
    votes: Sequence[Vote] | str | Path = (),
    every_class: bool = False,
    class_attribute: str = "label",
    name_attribute: str = "",
    recipe: Recipe | str | Path | None = None,
    cache: FeatureCache | None = None,
    progress: bool | OpenBar = True,
) -> LeakAudit:
    """Check whether a training set contains evaluation objects, and list what to remove.

    Run it again after people have voted on the pairs (`resight review OUT`).

    Args:
        train: The training set: a collection, a folder, a manifest or a data set ("gldv2:ROOT").
        evaluation: The evaluation set, likewise; of a data set, its queries.
        out: The folder for the audit.
        k: Matches to check per evaluation image.
        least: Probability from which a pair without votes counts.
        texts: Classes whose name contains one of these are removed too; or a file with one text per line.
        votes: Votes from another tool, or a CSV file of them (a, b, reviewer, verdict).
        every_class: Remove every class with a confirmed match.
        class_attribute: The attribute that holds the class.
        name_attribute: The attribute of training images that names the class.
        recipe: How to encode sources that are no collection; default: as the other source, or the default recipe.
        cache: Reuse features in this cache.
        progress: Show a bar in a notebook; False: none.

    Returns:
        The pairs, what counts as confirmed, and what to remove. `out` has the same as files.

    Raises:
        InputError: A source holds no images.
        SpaceMismatch: The two sources are collections that encode images in different ways.

    Examples:
        >>> import resight
        >>> found = resight.audit("photos", "truth.csv", "audit", k=1, recipe="tokens")
        >>> found.to_dict()["evaluation_images"], len(found)
        (1, 1)
    """
    check_number("k", k, 1, whole=True)
    check_number("least", least, 0, 1)
    folder = Path(out)
    rules = Rules(k, least, _read_texts(texts), every_class, class_attribute, name_attribute)
    given = read_votes(Path(votes)) if isinstance(votes, (str, Path)) else votes
    known = [open_collection(path, must_exist=True).recipe for path in (train, evaluation) if is_collection(path)]
    chosen = (recipes.load(recipe) if isinstance(recipe, Path) else recipe) or (known[0] if known else None)
    with open_bar(progress, "indexing TRAIN") as bar:
        one, skipped = open_source(train, folder / "train.resight", chosen, cache=cache, progress=bar)
    with open_bar(progress, "indexing EVAL") as bar:
        two, others = open_source(evaluation, folder / "eval.resight", chosen, queries=True, cache=cache, progress=bar)
    with open_bar(progress, "auditing") as bar:
        found = find_leaks(one, two, folder, rules, given, bar)
    write_audit(found, folder, one, rules)
    return LeakAudit(found, folder, (*skipped, *others))


def _read_texts(texts: Sequence[str] | Path) -> tuple[str, ...]:
    if isinstance(texts, Path):
        return tuple(text for _, text in read_lines(texts, "one text per line"))
    return (texts,) if isinstance(texts, str) else tuple(texts)
