"""`resight judge`: figures of rankings from any system, and paired tests between them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json, complete
from resight.errors import InputError

if TYPE_CHECKING:
    from resight.evaluate.judge_runs import JudgedRun
    from resight.evaluate.statistics.tests import Compared
    from resight.types import Judgement

SEED = 0
WAYS = ("refuse", "zero", "leave")


def judge(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Rankings as a TREC run file.")],
    qrels: Annotated[Path | None, typer.Option(metavar="FILE", help="Ground truth as TREC qrels.")] = None,
    data: Annotated[Path | None, typer.Option(metavar="ROOT", help="Or: the folder of a data set …")] = None,
    recipe: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="… and the recipe that names it.", autocompletion=complete("recipes")),
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="e.g. ap, medium/ap_trapezoid, uap; again for more.")
    ] = None,
    compare: Annotated[
        list[Path] | None, typer.Option(metavar="RUN", help="Another run to compare with the first; again for more.")
    ] = None,
    missing: Annotated[
        str, typer.Option(metavar="WAY", help="If a run lacks queries with positives: refuse, zero or leave.")
    ] = "refuse",
    correction: Annotated[
        str, typer.Option(metavar="NAME", help="Correction for multiple comparisons: holm, benjamini_hochberg or none.")
    ] = "holm",
    json: Json = False,
) -> None:
    """Judge rankings from any system, and compare runs.

    Ground truth comes from a data set or from qrels; paired tests compare the runs.
    """
    import numpy as np

    import resight
    from resight.evaluate.judge_runs import compare_runs

    if missing not in WAYS:
        raise InputError(
            "no such way to treat missing queries",
            expected=f"--missing {', '.join(WAYS)}",
            actual=missing,
            fix="choose one of these",
        )
    truth = _find_truth(qrels, data, recipe)
    names = list(dict.fromkeys(metric or truth.metrics))
    judged = {
        str(path): resight.judge(
            path,
            truth.judgements,
            names,
            known=truth.known,
            missing=missing,  # type: ignore[arg-type]
        )
        for path in dict.fromkeys([run, *(compare or [])])
    }
    others = {label: one for label, one in judged.items() if label != str(run)}
    compared = compare_runs(judged[str(run)], others, np.random.default_rng(SEED), correction=correction)
    if json:
        return terminal.print_json(_summarise(judged, str(run), truth, compared, correction))
    _print_figures(judged, truth, names)
    if others:
        _print_differences(compared, str(run), correction)
    return None


@dataclass(frozen=True)
class _Truth:
    name: str
    judgements: Mapping[str, "Judgement"]
    known: frozenset[str] | None  # ids of the database, if known
    metrics: tuple[str, ...]
    notes: tuple[str, ...] = ()


def _find_truth(qrels: Path | None, data: Path | None, recipe: str | None) -> _Truth:
    from resight.evaluate import trec
    from resight.evaluate.given_runs import METRICS

    if qrels is not None and data is None and recipe is None:
        return _Truth(str(qrels), trec.read_qrels(qrels), None, METRICS)
    if qrels is None and data is not None and recipe is not None:
        return _read_dataset(data, recipe)
    raise InputError(
        "it is not clear what to judge the run by",
        expected="--qrels FILE, or --data ROOT with --recipe NAME",
        actual=", ".join(
            name for name, given in (("--qrels", qrels), ("--data", data), ("--recipe", recipe)) if given is not None
        )
        or "none of them",
        fix="give one or the other",
    )


def _read_dataset(root: Path, name: str) -> _Truth:
    from resight import recipe as recipes
    from resight.data import sets
    from resight.evaluate.given_runs import METRICS
    from resight.evaluate.metrics import RunMetric, build

    chosen = recipes.load_all(name)[0]
    if chosen.data is None:
        raise InputError(f"the recipe {name!r} names no data", expected="a recipe with data", fix="choose another")
    dataset = sets.build(chosen.data.name, **chosen.data.settings).load(root)
    boxed = [one for one in chosen.metrics if not isinstance(found := build(one), RunMetric) and found.localises]
    notes = (f"{', '.join(boxed)}: left out, because a run file has no boxes",) if boxed else ()
    metrics = tuple(one for one in chosen.metrics if one not in boxed) or METRICS
    return _Truth(dataset.name, dataset.judgements, frozenset(ref.id for ref in dataset.database), metrics, notes)


def _print_figures(judged: Mapping[str, "JudgedRun"], truth: _Truth, names: Sequence[str]) -> None:
    rows = [(label, str(len(one.values)), *(str(one.figures[name]) for name in names)) for label, one in judged.items()]
    terminal.print_table(f"judged by {truth.name}", ("run", "queries", *names), rows, range(1, len(names) + 2))
    first = next(iter(judged.values()))
    for name in names:
        left = first.figures[name].left_out
        terminal.echo(
            f"  {name}: {first.figures[name].convention}" + (f" Queries without a value: {left:,}." if left else "")
        )
    terminal.echo("  ±: half the 95 % interval of a bootstrap over the queries (1,000 samples, seed 0).")
    for note in (*truth.notes, *(line for label, one in judged.items() for line in _explain(label, one))):
        terminal.echo(f"  {terminal.clean(note)}")


def _explain(label: str, run: "JudgedRun") -> list[str]:
    """Which queries and positives the figures leave out or count as not found."""
    counted = (
        (len(run.unjudged), "queries left out for lack of judgements"),
        (len(run.without_positives), "queries without positives, counted only by uap and calibration_error"),
        (len(run.missing), "queries with positives that the run lacks"),
        (run.not_found, "positives missing from their rankings, counted as not found"),
    )
    return [f"{label}: {words}: {number:,}" for number, words in counted if number]


def _print_differences(compared: Mapping[str, Sequence["Compared"]], reference: str, correction: str) -> None:
    rows = [
        (
            one.label,
            name,
            str(one.queries),
            f"{one.difference:+.4f} [{one.low:+.4f}, {one.high:+.4f}]",
            *(_format_p(one.p[test], one.corrected[test]) for test in one.p),
        )
        for name, others in compared.items()
        for one in others
    ]
    tests = list(next(iter(compared.values()))[0].p) if rows else []
    terminal.echo()
    columns = ("run", "metric", "queries", "difference", *(f"p, {test}" for test in tests))
    terminal.print_table(f"against {reference}", columns, rows, range(2, len(columns)))
    terminal.echo("  difference: mean minus the reference's mean, with a paired 95 % bootstrap interval.")
    terminal.echo(f"  p: of each test alone → corrected for all {len(rows)} comparisons ({correction}).")


def _format_p(alone: float, corrected: float) -> str:
    return "–" if math.isnan(alone) else f"{alone:.4f} → {corrected:.4f}"


def _summarise(
    judged: Mapping[str, "JudgedRun"],
    reference: str,
    truth: _Truth,
    compared: Mapping[str, Sequence["Compared"]],
    correction: str,
) -> dict[str, Any]:
    """Everything as JSON; a missing value is null."""
    summary = {
        "judged_by": truth.name,
        "runs": {
            label: {
                "queries": len(one.values),
                "metrics": {name: terminal.plain(figure) for name, figure in one.figures.items()},
                "unjudged": one.unjudged,
                "without_positives": one.without_positives,
                "missing": one.missing,
                "positives_not_found": one.not_found,
                "per_query": one.values,
            }
            for label, one in judged.items()
        },
        "compared_with": reference,
        "differences": {name: [terminal.plain(one) for one in others] for name, others in compared.items() if others},
        "correction": correction,
        "notes": truth.notes,
        "bootstrap_seed": SEED,
    }
    return {key: _blank(value) for key, value in summary.items()}


def _blank(value: Any) -> Any:
    """NaN and infinity, which JSON lacks, as None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _blank(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_blank(part) for part in value]
    return value
