"""Tables of model complexity: parameters, operations and dimensions of networks, without data and without weights.

In: a PaperTable whose recipes have one encoder each. Out: a Measured per cell, exact and without an interval.

    params   millions of parameters, without classifier
    gflops   10⁹ multiplications with their additions, of one image of the encoder's `size` (usually 224 × 224);
             convolutions and matrix products only (encode/networks/flops.py)
    dim      dimensions of the network's own vector; of a patch or cell where it has none

A row may count some parts of a network alone: parts = ["backbone", "enhancement"], as `resight encoders NAME --measure`
names them. Networks are counted on torch's meta device, where seven billion parameters take no memory, each in a
process of its own. Nothing is fetched: `pretrained`, `weights` and the like are left out, but for a network that
resight has trained, whose file knows its design.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from resight import plugins
from resight.errors import RecipeError
from resight.recipe.tables import read_choice
from resight.reproduce import worker
from resight.reproduce.experiments import list_alternatives, try_recipe
from resight.reproduce.kinds import Requirements
from resight.reproduce.paper_table import Column, PaperRow, PaperTable
from resight.reproduce.run import Cell, Measured, NotRun, Run
from resight.types import Choice

FACTS = ("params", "gflops", "dim")
PARTS = "parts"
COUNT = "resight.reproduce.kinds.complexity:count_encoder"
SOURCES = ("pretrained", "backbone_weights", "untrained")  # settings about first weights
Counts = dict[str, float]


def measure(table: PaperTable, rows: Sequence[PaperRow], run: Run) -> Iterator[tuple[str, str, Cell]]:
    for row in rows:
        known: dict[str, Counts | NotRun] = {}  # by the encoder: the columns of a row mostly share one
        for column in table.measured:
            answer = _count(table, row, column, run, known)
            if not isinstance(answer, NotRun) and column.metric not in answer:
                answer = NotRun("parts of a network have no dimensions of their own")
            yield row.name, column.name, answer if isinstance(answer, NotRun) else Measured(answer[column.metric])


def check(table: PaperTable) -> None:
    for column in table.measured:
        if column.metric not in FACTS:
            raise _refuse(f"the column {column.name!r} has no such fact", f"one of {', '.join(FACTS)}", column.metric)
        if column.settings:
            raise plugins.refuse_key(next(iter(column.settings)), (), f"the column {column.name!r}")
    for row in table.rows:
        parts = row.settings.get(PARTS, [])
        for key in row.settings:
            if key != PARTS:
                raise plugins.refuse_key(key, (PARTS,), f"the row {row.name!r}")
        if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
            raise _refuse(f"the row {row.name!r}: parts does not fit", "a list of names", repr(parts))


def requirements(table: PaperTable) -> Requirements:  # noqa: ARG001 - every kind is given its table
    return Requirements(packages=("torch", "timm", "transformers"))


def count_parameters(encoder: Choice) -> float:
    """Millions."""
    return _count_choice(encoder)["params"]


def count_gflops(encoder: Choice) -> float:
    return _count_choice(encoder)["gflops"]


def count_encoder(encoder: Any, parts: Sequence[str]) -> Counts:
    """The facts of an encoder as a recipe writes it, or of some of its parts; runs in a process of its own."""
    choice = read_choice(encoder, "encoder")
    return _count_parts(choice, parts) if parts else _count_choice(choice)


def _count(
    table: PaperTable, row: PaperRow, column: Column, run: Run, known: dict[str, Counts | NotRun]
) -> Counts | NotRun:
    if row.skip:
        return NotRun(row.skip)
    made, problem = try_recipe(table, row, column, list_alternatives(table, row, column)[0], run.overrides)
    encoders = [branch.get("encoder") for branch in made.get("branches", [])]
    if problem is None and (len(encoders) != 1 or encoders[0] is None):
        problem = _refuse("a row of complexity needs one encoder", "one branch with an encoder", f"{len(encoders)}")
    if problem is not None:
        return NotRun(worker.describe(problem))
    question = {"encoder": encoders[0], PARTS: row.settings.get(PARTS, [])}
    key = repr(question)
    if key not in known:
        run.report(f"counting {row.name}")
        known[key] = run.isolate(COUNT, question)
    return known[key]


def _count_choice(encoder: Choice) -> Counts:
    from resight.encode.networks.flops import count_network

    if encoder.name == "fused":
        parts = [read_choice(part["encoder"], "encoder") for part in encoder.settings.get(PARTS, [])]
        counted = [_count_choice(part) for part in parts]
        return {fact: sum(one[fact] for one in counted) for fact in FACTS}
    module, config = _configure(encoder)
    if not hasattr(module, "sketch"):
        raise _refuse(f"the size of {encoder.name} cannot be counted", "a network on torch", encoder.name)
    network = module.sketch(config)
    counts = count_network(network, config.size or network.input.size)
    return {"params": counts.parameters / 1e6, "gflops": counts.operations / 1e9, "dim": counts.dimensions}


def _count_parts(encoder: Choice, parts: Sequence[str]) -> Counts:
    module, config = _configure(encoder)
    costs = {cost.part: cost for cost in module.count_parts(config)} if hasattr(module, "count_parts") else {}
    for part in parts:
        if part not in costs:
            raise _refuse(f"{encoder.name} has no part {part!r}", f"one of {', '.join(costs) or 'none'}", part)
    return {
        "params": sum(costs[part].parameters for part in parts) / 1e6,
        "gflops": sum(costs[part].operations for part in parts) / 1e9,
    }


def _configure(encoder: Choice) -> tuple[Any, Any]:
    """The plug-in and its settings, for a network without weights."""
    from resight.encode import named_networks

    settings = {key: value for key, value in encoder.settings.items() if key not in SOURCES}
    free = {} if "weights" in settings else {"untrained": True}
    choice = named_networks.resolve(Choice(encoder.name, {**settings, **free}))
    module = plugins.find(named_networks.BACKBONES, choice.name)
    if not hasattr(module, "sketch"):
        return module, None
    return module, plugins.configure(module.Config, choice.settings, f"encoder {encoder.name!r}")


def _refuse(problem: str, expected: str, actual: str) -> RecipeError:
    return RecipeError(
        problem, expected=expected, actual=actual, fix="correct the table's file, or choose another encoder"
    )
