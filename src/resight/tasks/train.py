"""`resight.train(...)`: a network by a recipe, or a light head for your own photos. `resight train` calls it too.

In: a recipe with `[train]` and the folder of its data, or a folder of photos. Out: a Training, and its files in `out`.
"""

import dataclasses
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resight import recipe as recipes
from resight.encode.feature_cache import FeatureCache
from resight.errors import InputError
from resight.files.documents import load_json
from resight.files.remote import is_remote
from resight.progress import Bar, OpenBar, open_bar
from resight.tasks import check_number
from resight.types import Recipe

if TYPE_CHECKING:
    from resight.train.distributed import Team
    from resight.train.loop import StepReport
    from resight.train.train_head import Report

HEAD, MINUTES = "tokens", 15.0  # defaults with a folder of photos


@dataclass(frozen=True)
class Training:
    """What was trained; `resight.train` returns it.

    Attributes:
        recipe: A recipe file that applies it, for `resight.open`.
        improved: Whether a head is used. False: the gain is not significant, and the recipe encodes as before. True of
            a network.
        verdict: The conclusion in one sentence.
        report: All figures, as in report.json; empty in the helping processes of torchrun.
        head: The same of a head; None for a network.
    """

    recipe: Path
    improved: bool
    verdict: str
    report: Mapping[str, Any]
    head: "Report | None" = None


def train(
    recipe: Recipe | str | Path | None = None,
    data: str | Path | None = None,
    out: str | Path | None = None,
    *,
    folder: str | Path | None = None,
    pairs: str | Path | None = None,
    minutes: float = MINUTES,
    resume: bool = False,
    audit: str | Path | None = None,
    processes: int = 1,
    cache: FeatureCache | None = None,
    progress: bool | OpenBar = True,
) -> Training:
    """Train a network by a recipe, or a light head that improves an encoder on your own photos.

    Args:
        recipe: The recipe of a network, with `[train]`, such as "cider/sfm120k"; with `folder`, the recipe that gets a
            head (default: tokens).
        data: The folder of the recipe's training data.
        out: The folder for the result; with `folder`, the default is PHOTOS.trained.
        folder: Your own photos, one folder per object; a head is trained instead of a network.
        pairs: With `folder`: pairs of the same object (CSV: a, b), or votes.
        minutes: With `folder`: how long to train.
        resume: Of a network: continue from the last checkpoint in `out`.
        audit: Of a network: refuse classes that the audit in this folder found to overlap.
        processes: Of a network: processes that share every batch.
        cache: With `folder`: reuse features in this cache.
        progress: Show a bar in a notebook; False: none.

    Returns:
        The recipe file to use, and how much better it is.

    Raises:
        InputError: The options contradict each other, or there is nothing to learn from.
        RecipeError: The recipe has no trainable network, or no vectors for a head.
        TrainingError: Training cannot go on.

    Examples:
        >>> import resight
        >>> import shutil
        >>> for name in "castle", "eiffel-2":
        ...     for number in range(2):
        ...         path = resight.ImageRef("", f"objects/{name}/{number}.png").path
        ...         _ = shutil.copytree("photos", f"objects/{name}{number}")
        >>> trained = resight.train("sift_vlad", folder="objects", out="trained", minutes=0.01)
        >>> trained.improved, trained.verdict
        (False, 'Too few objects to learn from: 4 of 24; the original encoder is kept.')
        >>> photos = resight.open("objects.resight", recipe=trained.recipe)
    """
    check_number("minutes", minutes, 0)
    check_number("processes", processes, 1, whole=True)
    if folder is not None:
        refuse_options(
            "folder", {"data": data, "resume": resume, "audit": audit, "processes": processes > 1}, "a network"
        )
        target = Path(out) if out else name_out(Path(folder))
        return _train_head(recipe or HEAD, Path(folder), target, pairs, minutes, cache, progress)
    refuse_options("a network", {"pairs": pairs, "minutes": minutes != MINUTES, "cache": cache}, "folder")
    if recipe is None or data is None or out is None:
        raise InputError(
            "it is not clear what to train",
            expected="recipe, data and out, or folder",
            actual=f"recipe {recipe}, data {data}, out {out}",
            fix='e.g. resight.train("cider/sfm120k", ROOT, "trained/")',
        )
    chosen = recipe if isinstance(recipe, Recipe) else recipes.load(recipe)
    if audit is not None and chosen.train is not None:  # as `train.audit` in its file
        method = dataclasses.replace(chosen.train, settings={**chosen.train.settings, "audit": str(audit)})
        chosen = dataclasses.replace(chosen, train=method)
    return _train_network(chosen, Path(data), Path(out), resume, processes, progress)


def name_out(folder: Path) -> Path:
    """The default folder of a head: beside the photos, or in the current folder if the photos are remote."""
    if is_remote(folder):
        return Path(f"{folder.name}.trained")
    named = folder if folder.name not in ("", "..") else folder.resolve()
    return named.with_name(f"{named.name}.trained")


def refuse_options(mode: str, options: Mapping[str, object], other: str) -> None:
    """Refuses options of the other mode, which would have no effect."""
    given = [name for name, value in options.items() if value]
    if given:
        raise InputError(
            f"{' and '.join(given)} cannot be given with {mode}",
            expected=f"options of {mode}",
            actual=f"{', '.join(given)}, which belong to {other}",
            fix="leave them out" if len(given) > 1 else "leave it out",
        )


def _train_network(
    recipe: Recipe, data: Path, out: Path, resume: bool, processes: int, progress: bool | OpenBar
) -> Training:
    from resight.train.distributed import join, launch
    from resight.train.train_config import RECIPE, REPORT

    leads = True
    if processes > 1:
        launch(processes, share_work, (recipe, data, out, resume, progress))
    else:
        with join() as team:
            share_work(team, recipe, data, out, resume, progress)
            leads = team.leads
    report: dict[str, Any] = load_json((out / REPORT).read_text(encoding="utf-8")) if leads else {}
    return Training(out / RECIPE, True, f"{recipe.name} is trained.", report)


def share_work(
    team: "Team", recipe: Recipe, data: Path, out: Path, resume: bool, progress: bool | OpenBar = False
) -> None:
    """The work of one process; the leading process shows the progress."""
    from resight.evaluate import judge
    from resight.train.train_network import train_recipe

    bars = open_bar(progress, "reading sizes") if team.leads else nullcontext()
    with bars as bar:

        def show(stage: str, report: "StepReport") -> None:
            assert bar is not None
            found = f", validation {report.validation:.3f}" if report.validation is not None else ""
            bar.rename(f"{stage}: epoch {report.epoch + 1}, loss {report.loss:.3f}, rate {report.rate:.2g}{found}")
            bar(report.step, report.steps)

        train_recipe(recipe, data, out, judge, resume=resume, team=team, on_step=show if bar else None, listing=bar)


def _train_head(
    recipe: Recipe | str | Path,
    folder: Path,
    out: Path,
    pairs: str | Path | None,
    minutes: float,
    cache: FeatureCache | None,
    progress: bool | OpenBar,
) -> Training:
    from resight.evaluate import judge
    from resight.evaluate.statistics.tests import paired_interval, randomisation_test
    from resight.train.fit_head import Settings
    from resight.train.train_head import REPORT, train_head

    def show(bar: Bar, head: Any, check: Any) -> None:
        bar.rename(f"{head.name}: step {check.step}, loss {check.loss:.3f}, AP {check.score:.3f}")

    with open_bar(progress, "encoding") as bar:
        report = train_head(
            folder,
            out,
            recipe if isinstance(recipe, Recipe) else recipes.load(recipe),
            judge=judge,
            interval=paired_interval,
            chance=randomisation_test,
            pairs=Path(pairs) if pairs else None,
            settings=Settings(minutes=minutes),
            cache=cache,
            progress=bar,
            on_check=lambda head, check: show(bar, head, check),
        )
    return Training(report.recipe, report.kept, report.verdict, load_json((out / REPORT).read_text("utf-8")), report)
