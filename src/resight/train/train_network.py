"""Train a network by a recipe (`train_recipe`).

In: a Recipe with `data`, a trainable encoder (cider, landmark) and `[train]`. Out: a Trained, and in the folder `out`

    network.safetensors        for `encoder = { name = "cider", weights = … }`
    recipe.toml                a recipe with that encoder, for `resight index`
    report.json                data, classes and results
    all/ | backbone/, head/    each stage: checkpoint, best weights, curves
"""

import dataclasses
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from resight import plugins
from resight.data import sets
from resight.encode.networks.design_header import save_network
from resight.errors import InputError, RecipeError
from resight.files.atomic import write_atomic
from resight.files.fingerprint import fingerprint_file
from resight.recipe.tables import write_recipe
from resight.train import losses
from resight.train.distributed import Team, check_batch
from resight.train.examples import Examples, Parts, choose_examples, read_sizes
from resight.train.head_evaluation import Judge
from resight.train.held_out import Validation
from resight.train.leakage_guard import find_left_out
from resight.train.loading import ImageBatches
from resight.train.loop import LAST, Report, StepReport, train
from resight.train.train_config import BEFORE_TRAINING, NETWORK, RECIPE, REPORT, Settings, Stage, read_settings
from resight.types import Choice, IntArray, Recipe

SIZES = "sizes.json"
TRAINABLE = ("cider", "landmark")  # encoders; their names are also the keys of designs in weights files
BACKBONES = "resight.encode.backbones"
ALONE = Team()


@dataclasses.dataclass(frozen=True)
class Trained:
    network: Path
    recipe: Path
    data: str
    images: int
    classes: int
    held_out_images: int
    held_out_classes: int
    notes: tuple[str, ...]
    stages: dict[str, Report]


def train_recipe(
    recipe: Recipe,
    root: Path,
    out: Path,
    judge: Judge,
    *,
    resume: bool = False,
    team: Team = ALONE,
    on_step: Callable[[Stage, StepReport], None] | None = None,
    listing: Callable[[int, int], None] | None = None,
) -> Trained:
    """Train all stages. `judge` is resight.evaluate's; `listing(done, total)` is called while image sizes are read."""
    settings = read_settings(recipe)
    check_batch(settings.batch, settings.accumulate, settings.together, team.size)
    _check_folder(out, settings, resume)
    network = make_network(recipe)
    parts = load_examples(recipe, root, settings)
    sizes = [_read_sizes(some, settings, out, team, listing) for some in (parts.train, parts.held_out)]
    batches = ImageBatches(parts.train, sizes[0], settings, network.trunk.input, team)
    validate = None
    if parts.held_out.refs:
        validate = Validation(parts.held_out, sizes[1], settings, network.trunk.input, judge)
    dimensions = network.design.dimensions or network.trunk.channels
    reports: dict[str, Report] = {}
    for stage in settings.stages:
        loss = losses.build(settings.loss.name, len(parts.train.classes), dimensions, **settings.loss.settings)
        reports[stage] = train(
            network,
            loss,
            batches,
            settings,
            out / stage,
            validate,
            about=describe_network(recipe, network),
            stage=stage,
            team=team,
            resume=resume,
            on_step=None if on_step is None else functools.partial(on_step, stage),
        )
    trained = _describe(recipe, parts, reports, out)
    if team.leads:
        _write(trained, network, recipe, out)
    return trained


def make_network(recipe: Recipe) -> Any:
    """The untrained network of the recipe's only branch, a torch module with `design` and `trunk`."""
    encoder = recipe.branches[0].encoder
    if len(recipe.branches) != 1 or recipe.branches[0].photometric or encoder.name not in TRAINABLE:
        raise RecipeError(
            f"the recipe {recipe.name!r} has no trainable network",
            expected='one branch without a photometric step, its encoder "cider" (with any backbone of timm or '
            'transformers) or "landmark"',
            actual=", ".join(branch.encoder.name for branch in recipe.branches),
            fix="for a light head over any other encoder: resight train --folder PHOTOS",
        )
    return plugins.find(BACKBONES, encoder.name).make_network(_configure(encoder))


def describe_network(recipe: Recipe, network: Any) -> dict[str, Any]:
    """The network's design and the origin of its first weights; a file is identified by its content."""
    config = _configure(recipe.branches[0].encoder)
    file = config.weights or config.backbone_weights
    design = dataclasses.asdict(network.design)
    if file is not None:
        return {**design, "first weights": fingerprint_file(file, 16)}
    return {**design, "first weights": "of the backbone's makers" if config.pretrained else "random"}


def _configure(encoder: Choice) -> Any:
    module = plugins.find(BACKBONES, encoder.name)
    return plugins.configure(module.Config, encoder.settings, f"encoder {encoder.name!r}")


def load_examples(recipe: Recipe, root: Path, settings: Settings) -> Parts:
    if recipe.data is None:
        raise RecipeError(
            f"the recipe {recipe.name!r} has no training data",
            expected="data: a set with labels, such as sfm120k, gldv2, manifest, or folder with labels = true",
            fix='e.g. data = { name = "folder", labels = true }',
        )
    dataset = sets.build(recipe.data.name, **recipe.data.settings).load(root)
    return choose_examples(dataset, settings, find_left_out(dataset, settings))


def _check_folder(out: Path, settings: Settings, resume: bool) -> None:
    """Refuse to overwrite a training by mistake."""
    begun = [stage for stage in settings.stages if (out / stage / LAST).exists()]
    if begun and not resume:
        raise InputError(
            f"{out} already holds a training",
            expected="a folder without one",
            actual=", ".join(f"{stage}/{LAST}" for stage in begun),
            fix="add --resume to continue it, or choose another --out",
        )


def _read_sizes(
    examples: Examples, settings: Settings, out: Path, team: Team, listing: Callable[[int, int], None] | None
) -> IntArray | None:
    """The leader reads the image headers; the other processes read the file that it writes."""
    if settings.sampling == "fixed" or not examples.refs:
        return None
    if team.leads:
        read_sizes(examples.refs, out / SIZES, listing)
    team.broadcast(None)
    return read_sizes(examples.refs, out / SIZES)


def _describe(recipe: Recipe, parts: Parts, reports: dict[str, Report], out: Path) -> Trained:
    return Trained(
        network=out / NETWORK,
        recipe=out / RECIPE,
        data=recipe.data.name if recipe.data else "",
        images=len(parts.train.refs),
        classes=len(parts.train.classes),
        held_out_images=len(parts.held_out.refs),
        held_out_classes=len(parts.held_out.classes),
        notes=parts.notes,
        stages=reports,
    )


def _write(trained: Trained, network: Any, recipe: Recipe, out: Path) -> None:
    (branch,) = recipe.branches
    save_network(network, network.design, branch.encoder.name, out / NETWORK)
    kept = {key: value for key, value in branch.encoder.settings.items() if key not in BEFORE_TRAINING}
    encoder = Choice(branch.encoder.name, {**kept, "weights": str((out / NETWORK).absolute())})
    ready = dataclasses.replace(
        recipe, branches=(dataclasses.replace(branch, encoder=encoder),), data=None, train=None, metrics=()
    )
    write_recipe(ready, out / RECIPE, f"Network trained by the recipe {recipe.name}.")
    with write_atomic(out / REPORT) as temporary:
        temporary.write_text(json.dumps(dataclasses.asdict(trained), indent=1, default=str) + "\n", encoding="utf-8")
