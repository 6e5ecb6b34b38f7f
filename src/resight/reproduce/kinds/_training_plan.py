"""What the rows of a training table need: a table and a row in, a Plan with its recipe and whitening out.

`identify_network` names the trained network of a plan by a fingerprint, so that rows and tables can share it.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from resight import plugins
from resight.errors import RecipeError
from resight.files.fingerprint import fingerprint
from resight.recipe import parse
from resight.reproduce.encoder_overrides import apply_override
from resight.reproduce.paper_table import PaperRow, PaperTable
from resight.train.train_config import read_settings

WHITENINGS = ("lw", "shrunk", "pca", "none")
OWN_SETTINGS = ("whitening", "overlap", "audit")  # keys of --set that are not those of a recipe


@dataclasses.dataclass(frozen=True)
class Plan:
    """What the cells of one row need."""

    row: PaperRow
    recipe: Mapping[str, Any]  # with the training data and `train`
    whitening: str
    overlap: str  # file of a split, or ""

    @property
    def encoder(self) -> dict[str, Any]:
        encoder = self.recipe["branches"][0]["encoder"]
        return {"name": encoder} if isinstance(encoder, str) else dict(encoder)

    @property
    def transforms(self) -> list[Any]:
        return list(self.recipe["branches"][0].get("transforms", ()))


def make_plan(table: PaperTable, row: PaperRow, overrides: Sequence[str]) -> Plan:
    """The recipe and the whitening of a row, with the overrides of the row and of the user."""
    made: dict[str, Any] = json.loads(json.dumps({**table.recipe, **row.recipe}))
    made["whitening"] = row.settings.get("whitening", table.settings.get("whitening", "none"))
    for override in (*row.set, *overrides):
        apply_override(made, override)
    whitening, overlap, _ = (str(made.pop(key, "")) for key in OWN_SETTINGS)
    if whitening not in WHITENINGS and not whitening.endswith(".npz"):
        raise refuse("unknown whitening", f"{', '.join(WHITENINGS)}, or a file of `resight whiten`", whitening)
    return Plan(row, made, whitening, overlap)


def identify_network(plan: Plan) -> str:
    """A name for the trained network: the same for the same data, design and training, however they are written."""
    encoder = plan.encoder
    if "weights" in encoder:
        return fingerprint(f"given {Path(encoder['weights']).absolute()}", 16)
    recipe = parse({"name": plan.row.name, **plan.recipe})
    if recipe.data is None:
        raise refuse("nothing to train on", "data", "none")
    parts = {
        "data": _fill_in("resight.data.sets", recipe.data.name, recipe.data.settings),
        "encoder": _fill_in("resight.encode.backbones", encoder.pop("name"), encoder),
        "train": dataclasses.asdict(read_settings(recipe)),
    }
    return fingerprint(json.dumps(parts, sort_keys=True, default=str), 16)


def _fill_in(package: str, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a plug-in with its defaults."""
    module = plugins.find(package, name)
    return {"name": name, **dataclasses.asdict(plugins.configure(module.Config, settings, name))}


def refuse(problem: str, expected: str, actual: str) -> RecipeError:
    return RecipeError(problem, expected=expected, actual=actual, fix="correct the table's file or --set")
