"""Training tables: train a network, learn its whitening on the training set, and evaluate it on landmarks.

In: a PaperTable whose [recipe] has the training data (`data`), one branch with a trainable encoder, and `train`. Out: a
Measured per cell. Further keys of such a table:

    whitening   of the table or a row: "lw" (plain, as published), "shrunk" (ours, checked on held-out pairs), "pca",
                "none", or a file of `resight whiten`
    on          of a column: the evaluation set, one of EVALUATIONS
    of          of a column with the metric "mean": the columns to average; with "difference": the column to compare
    against     of a row: the row that "difference" subtracts
    split       of a row: "overlapping" or "other"; only these queries of the file that `--set overlap=FILE` gives

Trained networks lie in a folder beside those of the tables, by a fingerprint of their data, design and training, so
that rows and tables share them and an interrupted training continues. `--set branches.0.encoder.weights=FILE` hands in
a network that was trained elsewhere, `--set whitening=…` changes the whitening of all rows. A whitening is learnt at
the scales of the database, and queries at other scales use the same one.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from resight import plugins
from resight.errors import InputError, ResightError
from resight.files.fingerprint import fingerprint
from resight.recipe import parse
from resight.recipe.tables import read_choice
from resight.reproduce import worker
from resight.reproduce.experiments import Experiment
from resight.reproduce.kinds import Requirements
from resight.reproduce.kinds._training_plan import WHITENINGS, Plan, identify_network, make_plan, refuse
from resight.reproduce.kinds.retrieval import Outcome, measure_experiments
from resight.reproduce.paper_table import Column, PaperRow, PaperTable
from resight.reproduce.run import Cell, Measured, NotRun, Run
from resight.train.train_config import BEFORE_TRAINING, NETWORK, REPORT, read_settings

EVALUATIONS: dict[str, dict[str, Any]] = {
    "oxford5k": {"name": "oxford_paris", "which": "oxford5k"},
    "paris6k": {"name": "oxford_paris", "which": "paris6k"},
    "roxford5k": {"name": "revisited", "which": "roxford5k"},
    "rparis6k": {"name": "revisited", "which": "rparis6k"},
}
MILLION = "+1m"  # after the name of a revisited set: with the distractors R1M
DISTRACTORS = "revisitop1m"  # their folder
MEAN, DIFFERENCE = "mean", "difference"
SPLITS = ("overlapping", "other")
NETWORKS = "networks"  # folder of trained networks, beside those of the tables
CHAIN = "resight.reproduce.kinds._training_chain"
TRAIN, WHITEN = f"{CHAIN}:train", f"{CHAIN}:whiten"
NO_SPLIT = (
    "no split of the queries: audit the training set (`resight audit TRAIN EVAL --out FOLDER`), then add "
    "--set overlap=FOLDER/overlap.csv"
)


def check(table: PaperTable) -> None:
    """Refuse unknown settings and metrics, and rows that cannot be trained."""
    from resight.evaluate.judge_query import judge_all

    _check_keys("the table", table.settings, ("whitening",))
    names = [column.name for column in table.columns]
    for column in table.measured:
        _check_keys(f"the column {column.name!r}", column.settings, ("on", "of"))
        if column.metric in (MEAN, DIFFERENCE):
            unknown = [name for name in _list_parts(column) or [""] if name not in names]
            if unknown:
                raise refuse(f"{column.name!r}: of names no column", ", ".join(names), repr(unknown[0]))
            continue
        judge_all((), [column.metric])
        if str(column.settings.get("on", "")).removesuffix(MILLION) not in EVALUATIONS:
            actual = str(column.settings.get("on", "nothing"))
            raise refuse(f"{column.name!r}: on names no evaluation set", ", ".join(EVALUATIONS), actual)
    for row in table.rows:
        _check_keys(f"the row {row.name!r}", row.settings, ("whitening", "against", "split"))
        against, split = row.settings.get("against"), row.settings.get("split", SPLITS[0])
        if against not in (None, *(other.name for other in table.rows)) or split not in SPLITS:
            raise refuse(f"{row.name!r}: against or split does not fit", "a row; overlapping or other", str(against))
        plan = make_plan(table, row, ())
        if not row.skip:
            recipe = parse({"name": row.name, **plan.recipe})
            read_settings(recipe)
            if recipe.data is None or recipe.data.name not in table.data:
                raise refuse(f"{row.name!r}: its training set is not in `data`", ", ".join(table.data), "another")


def requirements(table: PaperTable) -> Requirements:
    """ImageNet weights of the backbones, and torch and timm."""
    encoders = [make_plan(table, row, ()).encoder for row in table.rows if not row.skip]
    sources = dict.fromkeys(
        (str(encoder.get("backbone", "")), str(encoder.get("backbone_weights", ""))) for encoder in encoders
    )
    weights = [f"ImageNet weights of {name}" + (f" in {file}" if file else " (timm's hub)") for name, file in sources]
    missing = [line for source in sources if (line := _find_missing(*source))]
    return Requirements(weights=tuple(weights), packages=("torch", "timm"), missing=tuple(missing))


def _find_missing(backbone: str, file: str) -> str:
    """What is missing of a backbone's first weights; "" if they are here."""
    if file:
        return "" if Path(file).is_file() else f"there are no weights {file}"
    try:
        from resight.encode.networks.weight_files import has_timm_weights

        here = has_timm_weights(backbone)
        if here is None:
            from resight.encode.networks.timm_network import find_file  # imports torch and timm

            here = find_file(backbone) is not None
    except (ImportError, ResightError) as error:
        return str(error).partition("\n")[0]
    return "" if here else f"the weights of {backbone} are not on this machine; use it once with a network connection"


def measure(table: PaperTable, rows: Sequence[PaperRow], run: Run) -> Iterator[tuple[str, str, Cell]]:
    figures: dict[tuple[str, str], Cell] = {}
    networks: dict[str, list[Plan]] = {}
    for row in rows:
        try:
            if row.skip:
                raise _Stop(row.skip)
            plan = make_plan(table, row, run.overrides)
            networks.setdefault(identify_network(plan), []).append(plan)
        except (InputError, _Stop) as error:
            figures |= _fail(table, row, error)
    for number, (key, plans) in enumerate(networks.items(), start=1):
        run.report(f"network {number} of {len(networks)}: {plans[0].row.name}")
        figures |= _measure_network(table, plans, run.folder.parent / NETWORKS / key, run)
    for row in rows:
        for column in table.measured:
            yield row.name, column.name, _find_cell(table, row, column, figures)


def _measure_network(table: PaperTable, plans: Sequence[Plan], folder: Path, run: Run) -> dict[tuple[str, str], Cell]:
    """The cells of the rows that share a network, without means and differences."""
    figures: dict[tuple[str, str], Cell] = {}
    wanted: list[tuple[Plan, Column, Experiment]] = []
    for plan in plans:
        try:
            network = _train(plan, folder, run)
            whitening = _whiten(plan, network, folder, run)
        except (InputError, _Stop) as error:
            figures |= _fail(table, plan.row, error)
            continue
        for column in table.measured:
            if column.metric in (MEAN, DIFFERENCE):
                continue
            try:
                wanted.append((plan, column, _make_experiment(table, plan, column, network, whitening, run)))
            except InputError as error:
                figures[plan.row.name, column.name] = NotRun(worker.describe(error))
    distinct = {experiment.key: experiment for _, _, experiment in wanted}
    outcomes = measure_experiments(list(distinct.values()), run)
    for plan, column, experiment in wanted:
        figures[plan.row.name, column.name] = _read_figure(plan, column, outcomes[experiment.key])
    return figures


def _train(plan: Plan, folder: Path, run: Run) -> Path:
    """The file of the trained network; it is trained if it is not there yet."""
    if "weights" in plan.encoder:
        return Path(plan.encoder["weights"]).absolute()
    network = folder / NETWORK
    if not (network.is_file() and (folder / REPORT).is_file()):
        arguments = {**_describe_training(plan, run), "out": str(folder)}
        answer = run.isolate(TRAIN, arguments, remember=False)  # the folder does
        if isinstance(answer, NotRun):
            raise _Stop(f"training: {answer.reason}")
    return network


def _whiten(plan: Plan, network: Path, folder: Path, run: Run) -> Path | None:
    """The file of the whitening at the scales of the row's database; it is learnt if it is not there yet."""
    if plan.whitening == "none":
        return None
    if plan.whitening not in WHITENINGS:
        return Path(plan.whitening).absolute()
    chain = [_drop_query_scales(transform) for transform in plan.transforms]
    file = folder / f"whitening-{plan.whitening}-{fingerprint(json.dumps(chain, sort_keys=True), 8)}.npz"
    if not file.is_file():
        run.report(f"whitening {plan.whitening}: {plan.row.name}")
        branch = {**plan.recipe["branches"][0], "encoder": _load_trained(plan, network), "transforms": chain}
        arguments = {
            **_describe_training(plan, run),
            "branch": branch,
            "kind": plan.whitening,
            "out": str(file),
        }
        answer = run.isolate(WHITEN, arguments, remember=False)  # the file does
        if isinstance(answer, NotRun):
            raise _Stop(f"whitening: {answer.reason}")
    return file


def _describe_training(plan: Plan, run: Run) -> dict[str, Any]:
    recipe = {key: value for key, value in plan.recipe.items() if key != "metrics"}
    return {"recipe": recipe, "root": str(run.root(read_choice(plan.recipe["data"], "data").name))}


def _make_experiment(
    table: PaperTable, plan: Plan, column: Column, network: Path, whitening: Path | None, run: Run
) -> Experiment:
    """The trained network on the column's evaluation set, with all metrics that the table asks of this set."""
    on = str(column.settings["on"])
    metrics = [other.metric for other in table.measured if other.settings.get("on") == on]
    transforms = [*plan.transforms, *([{"name": "whiten", "file": str(whitening)}] if whitening else [])]
    branch = {**plan.recipe["branches"][0], "encoder": _load_trained(plan, network), "transforms": transforms}
    made = {key: value for key, value in plan.recipe.items() if key not in ("data", "train", "metrics")}
    made |= {"data": _find_evaluation(on, run), "branches": [branch], "metrics": list(dict.fromkeys(metrics))}
    return Experiment(((plan.row.name, column.name),), made, parse({"name": plan.row.name, **made}))


def _find_evaluation(on: str, run: Run) -> dict[str, Any]:
    data = dict(EVALUATIONS[on.removesuffix(MILLION)])
    if not on.endswith(MILLION):
        return data
    folder = None if DISTRACTORS in run.data.named else run.root(data["name"]) / DISTRACTORS
    if folder is None or not folder.exists():
        folder = run.root(DISTRACTORS)
    return {**data, "distractors": str(folder.absolute())}


def _load_trained(plan: Plan, network: Path) -> dict[str, Any]:
    encoder = {key: value for key, value in plan.encoder.items() if key not in BEFORE_TRAINING}
    return {**encoder, "weights": str(network)}


def _drop_query_scales(transform: Any) -> Any:
    if isinstance(transform, str):
        return {"name": transform}
    return {key: value for key, value in transform.items() if key != "query_scales"}


def _read_figure(plan: Plan, column: Column, outcome: Outcome | NotRun) -> Cell:
    if isinstance(outcome, NotRun):
        return outcome
    figure = outcome.figures[column.metric]
    split = plan.row.settings.get("split")
    if split is None:
        return figure if figure.value == figure.value else NotRun(f"no query has a value of {column.metric}")
    if not plan.overlap:
        return NotRun(NO_SPLIT)
    return _take_split(figure, str(split), plan.overlap)


def _take_split(figure: Measured, split: str, file: str) -> Cell:
    """The mean over the queries of one split. A query that the file lacks belongs to the split of its landmark."""
    from resight.evaluate.strata import read_split

    try:
        known = read_split(Path(file))
    except InputError as error:
        return NotRun(worker.describe(error))
    overlapping = {_find_landmark(id) for id, value in known.items() if value == SPLITS[0]}
    landmarks = {_find_landmark(id) for id in known}
    chosen = {}
    for id, value in figure.queries.items():
        if value == value and (id in known or _find_landmark(id) in landmarks):
            own = known.get(id, SPLITS[0] if _find_landmark(id) in overlapping else SPLITS[1])
            if own == split:
                chosen[id] = value
    if not chosen:
        return NotRun(f"no query of the split {split!r} in {file}")
    return Measured(sum(chosen.values()) / len(chosen), note=f"{len(chosen)} queries", queries=chosen)


def _find_landmark(id: str) -> str:
    """paris_louvre_000136 and louvre_2 → louvre."""
    return re.sub(r"_\d+$", "", id.removeprefix("paris_"))


def _find_cell(table: PaperTable, row: PaperRow, column: Column, figures: Mapping[tuple[str, str], Cell]) -> Cell:
    if column.metric == DIFFERENCE:
        other = next((one for one in table.rows if one.name == row.settings.get("against")), None)
        if other is None:
            return NotRun("the row is compared with no other")
        compared = next(one for one in table.columns if [one.name] == _list_parts(column))
        ours, theirs = (_find_cell(table, one, compared, figures) for one in (row, other))
        if isinstance(ours, NotRun) or isinstance(theirs, NotRun):
            return ours if isinstance(ours, NotRun) else theirs
        return Measured(ours.value - theirs.value)
    if column.metric == MEAN:
        parts = [figures.get((row.name, name), NotRun("not chosen")) for name in _list_parts(column)]
        values = [part.value for part in parts if isinstance(part, Measured)]
        if len(values) < len(parts):
            return next(part for part in parts if isinstance(part, NotRun))
        return Measured(sum(values) / len(values))
    return figures.get((row.name, column.name), NotRun("not chosen"))


def _list_parts(column: Column) -> list[str]:
    of = column.settings.get("of", [])
    return [of] if isinstance(of, str) else [str(name) for name in of]


def _fail(table: PaperTable, row: PaperRow, error: Exception) -> dict[tuple[str, str], Cell]:
    reason = NotRun(str(error) if isinstance(error, _Stop) else worker.describe(error))
    return {(row.name, column.name): reason for column in table.measured}


class _Stop(Exception):
    """A row cannot go on; the message is the reason."""


def _check_keys(owner: str, settings: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in settings:
        if key not in known:
            raise plugins.refuse_key(key, known, owner)
