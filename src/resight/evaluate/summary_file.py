"""Summaries as JSON: plain values out, and back from the files of `resight eval --json`.

In: a Summary, or plain values. Out: the other. Reading accepts the present schema and older ones; parts that an older
version did not write stay empty. JSON has no NaN: `to_json` writes null, which reads as NaN.
"""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from resight.errors import InputError
from resight.evaluate.results import AnsweredImage, EmbeddingMap, GeoPosition, Point
from resight.evaluate.summary import (
    BinSummary,
    BreakdownSummary,
    Example,
    Examples,
    Figure,
    Provenance,
    QuerySummary,
    StratumSummary,
    Summary,
)
from resight.files.documents import load_json
from resight.types import Box

FIRST_SCHEMA, SCHEMA = 1, 2  # files without a number count as 1


def to_dict(summary: Summary) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "recipe": summary.recipe,
        "dataset": summary.dataset,
        "database": summary.database,
        "queries": len(summary.judged),
        "queries_without_positives": len(summary.queries) - len(summary.judged),
        "unreadable": list(summary.unreadable),
        "metrics": {name: dataclasses.asdict(figure) for name, figure in summary.figures.items()},
        "strata": {
            name: {metric: figure.mean for metric, figure in stratum.figures.items()}
            for name, stratum in summary.strata.items()
        },
        "breakdowns": [_write_breakdown(part) for part in summary.breakdowns],
        "examples": {
            "metric": summary.examples.metric,
            "worst": [_write_example(query) for query in summary.examples.worst],
            "best": [_write_example(query) for query in summary.examples.best],
        },
        "map": None if summary.map is None else dataclasses.asdict(summary.map),
        "positions": {
            "queries": {id: dataclasses.asdict(position) for id, position in summary.query_positions.items()},
            "database": {id: dataclasses.asdict(position) for id, position in summary.image_positions.items()},
        },
        "auc_known_against_unknown": summary.auc,
        "index_seconds": summary.index_seconds,
        "pictures_from_cache": summary.cached,
        "seconds_a_query": summary.total_seconds,
        "encode_seconds_a_query": summary.encode_seconds,
        "search_seconds_a_query": summary.search_seconds,
        "per_query": [_write_query(query) for query in summary.queries],
        "made_by": summary.provenance.made_by,
        "versions": summary.provenance.versions,
        "machine": summary.provenance.machine,
        "seeds": summary.provenance.seeds,
    }


def from_dict(values: Mapping[str, Any], source: str = "") -> Summary:
    """`source` names the file in errors."""
    try:
        return _read_summary(values)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise refuse_file(source, f"{type(error).__name__}: {error}") from error


def to_json(values: Mapping[str, Any]) -> str:
    """Numbers that are not finite become null."""
    return json.dumps(_replace_nan(values), indent=1, ensure_ascii=False, default=str, allow_nan=False) + "\n"


def read_values(path: Path) -> dict[str, Any]:
    """The values of an evaluation's file; refuses other files and newer schemas."""
    try:
        values = load_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}", expected="a file", actual=str(error), fix="check the path") from error
    except ValueError as error:
        raise refuse_file(path.name, str(error)) from error
    if not isinstance(values, dict) or not ("rows" in values or "per_query" in values):
        raise refuse_file(path.name, "no rows and no queries")
    schema = values.get("schema", FIRST_SCHEMA)
    if not isinstance(schema, int) or not FIRST_SCHEMA <= schema <= SCHEMA:
        raise InputError(
            f"{path.name} was written by another version of resight",
            expected=f"schema {FIRST_SCHEMA} to {SCHEMA}",
            actual=f"schema {schema}",
            fix="update resight, or evaluate again",
        )
    return values


def read_number(value: Any) -> float:
    """null reads as NaN."""
    return math.nan if value is None else float(value)


def refuse_file(source: str, actual: str) -> InputError:
    return InputError(
        f"{source} is not the file of an evaluation",
        expected="a file that `resight eval … --json FILE` wrote",
        actual=actual,
        fix="give such files",
    )


def _read_summary(values: Mapping[str, Any]) -> Summary:
    figures = {name: _read_figure(figure) for name, figure in values["metrics"].items()}
    queries = tuple(_read_query(query, figures) for query in values["per_query"])
    positions = values.get("positions") or {}
    return Summary(
        recipe=values["recipe"],
        dataset=values["dataset"],
        database=values["database"],
        figures=figures,
        queries=queries,
        unreadable=tuple(values.get("unreadable", ())),
        strata={name: _read_stratum(name, queries, means) for name, means in values.get("strata", {}).items()},
        breakdowns=tuple(_read_breakdown(part) for part in values.get("breakdowns", ())),
        examples=_read_examples(values.get("examples") or {}),
        map=_read_map(values.get("map")),
        query_positions=_read_positions(positions.get("queries", {})),
        image_positions=_read_positions(positions.get("database", {})),
        auc=values.get("auc_known_against_unknown"),
        index_seconds=values.get("index_seconds"),
        cached=values.get("pictures_from_cache", 0),
        provenance=Provenance(
            values.get("made_by", ""), values.get("versions", {}), values.get("machine", ""), values.get("seeds", {})
        ),
    )


def _write_breakdown(part: BreakdownSummary) -> dict[str, Any]:
    return {
        "name": part.name,
        "convention": part.convention,
        "positives_left_out": part.left_out,
        "bins": [
            {
                "label": one.label,
                "positives": one.positives,
                "queries": one.queries,
                "metrics": {
                    name: {"mean": figure.mean, "low": figure.low, "high": figure.high}
                    for name, figure in one.figures.items()
                },
            }
            for one in part.bins
        ],
    }


def _read_breakdown(values: Mapping[str, Any]) -> BreakdownSummary:
    bins = tuple(
        BinSummary(
            one["label"],
            one["positives"],
            one["queries"],
            {name: _read_figure(figure) for name, figure in one["metrics"].items()},
        )
        for one in values["bins"]
    )
    return BreakdownSummary(values["name"], values["convention"], values.get("positives_left_out", 0), bins)


def _write_query(query: QuerySummary) -> dict[str, Any]:
    return {
        "id": query.id,
        "stratum": query.stratum,
        "best": query.best,
        "probability": query.probability,
        "seconds": query.seconds,
        "encode_seconds": query.encode_seconds,
        "stages": dict(query.stages),
        "first_positive": query.first_positive,
        "judged": query.judged,
        **query.values,
    }


def _read_query(values: Mapping[str, Any], metrics: Mapping[str, Any]) -> QuerySummary:
    return QuerySummary(
        values["id"],
        values.get("stratum", ""),
        values.get("best", ""),
        values.get("probability"),
        read_number(values.get("seconds")),
        read_number(values.get("encode_seconds")),
        values.get("stages", {}),
        values.get("first_positive"),
        values.get("judged", True),
        {name: read_number(values[name]) for name in metrics if name in values},
    )


def _write_example(query: Example) -> dict[str, Any]:
    return {
        "id": query.id,
        "path": None if query.path is None else str(query.path),
        "box": query.box,
        "value": query.value,
        "first_positive": query.first_positive,
        "positives": query.positives,
        "answers": [
            {
                "id": answer.id,
                "path": None if answer.path is None else str(answer.path),
                "rank": answer.rank,
                "positive": answer.positive,
                "probability": answer.probability,
                "box": answer.box,
                "true_box": answer.true_box,
                "signals": {name: float(value) for name, value in answer.signals.items()},
            }
            for answer in query.answers
        ],
    }


def _read_examples(values: Mapping[str, Any]) -> Examples:
    worst, best = (tuple(_read_example(query) for query in values.get(kind, ())) for kind in ("worst", "best"))
    return Examples(values.get("metric", ""), worst, best)


def _read_example(values: Mapping[str, Any]) -> Example:
    return Example(
        values["id"],
        _read_path(values["path"]),
        _read_box(values["box"]),
        read_number(values["value"]),
        values["first_positive"],
        values["positives"],
        tuple(
            AnsweredImage(
                answer["id"],
                answer["rank"],
                answer["positive"],
                answer["probability"],
                _read_box(answer["box"]),
                _read_box(answer["true_box"]),
                answer["signals"],
                _read_path(answer["path"]),
            )
            for answer in values["answers"]
        ),
    )


def _read_stratum(name: str, queries: Sequence[QuerySummary], means: Mapping[str, Any]) -> StratumSummary:
    """Files hold means alone; intervals are not read back."""
    count = sum(query.stratum == name and bool(query.values) for query in queries)
    return StratumSummary(
        count, {metric: Figure(read_number(mean), math.nan, math.nan) for metric, mean in means.items()}
    )


def _read_figure(values: Mapping[str, Any]) -> Figure:
    mean, low, high = (read_number(values[key]) for key in ("mean", "low", "high"))
    return Figure(mean, low, high, values.get("convention", ""))


def _read_map(values: Mapping[str, Any] | None) -> EmbeddingMap | None:
    if not values:
        return None
    return EmbeddingMap(values["method"], tuple(Point(**point) for point in values["points"]), values["total"])


def _read_positions(values: Mapping[str, Mapping[str, Any]]) -> dict[str, GeoPosition]:
    return {id: GeoPosition(**position) for id, position in values.items()}


def _read_path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def _read_box(sides: Sequence[float] | None) -> Box | None:
    return None if sides is None else (sides[0], sides[1], sides[2], sides[3])


def _replace_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _replace_nan(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replace_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
