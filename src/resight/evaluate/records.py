"""Files of `resight eval --json` → Records: one row of one evaluation each, as plain values that a report needs.

A file holds one evaluation, or a comparison with many rows. What an older version has left out stays empty.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from resight.errors import InputError

FIRST_SCHEMA, SCHEMA = 1, 2  # files before the number was written down count as 1
NOT_FACTS = frozenset({"label", "rank_seconds_a_query", "against_reference", "evaluation"})


@dataclass(frozen=True)
class Figure:
    mean: float
    low: float
    high: float
    convention: str = ""


@dataclass(frozen=True)
class Record:
    label: str
    source: str  # the file that it is from
    dataset: str
    database: int
    recipe: Mapping[str, Any]
    figures: Mapping[str, Figure]  # metric → its mean over the queries
    values: Mapping[str, Mapping[str, float]]  # metric → query → value
    facts: Mapping[str, float]  # what the row is or costs: bytes an image, …
    seconds: float  # of a search, until the images are in order
    evaluation: Mapping[str, Any]  # all the rest: strata, examples, map, versions, machine

    @property
    def data(self) -> str:
        """What was searched: two records of the same data have the same queries and images."""
        settings = json.dumps(self.recipe.get("data"), sort_keys=True, default=str)
        return f"{self.dataset} | {self.database} | {settings}"


def read_records(sources: Sequence[str]) -> list[Record]:
    """`sources` are paths, or "LABEL=PATH" to call the rows otherwise.

    Rows of the same label on the same data are told apart by the names of their files.
    """
    records: list[Record] = []
    for source in sources:
        label, equals, path = source.partition("=")
        if not equals or Path(source).exists():
            label, path = "", source
        found = parse(_load(Path(path)), Path(path).name)
        single = len(found) == 1
        records += [replace(row, label=label if single else f"{label} {row.label}") if label else row for row in found]
    return tell_apart(records)


def parse(values: Mapping[str, Any], source: str = "") -> list[Record]:
    """The records of one evaluation or of one comparison."""
    if "rows" in values:
        return [_parse_row(row["label"], row["evaluation"], row, source) for row in values["rows"]]
    name = str(values["recipe"].get("name", "")) or source
    return [_parse_row(name, values, {}, source)]


def tell_apart(records: Sequence[Record]) -> list[Record]:
    """Records of the same data that have the same label get their file's name too."""
    seen = [(record.data, record.label) for record in records]
    named = [
        replace(record, label=f"{record.label} ({Path(record.source).stem})") if seen.count(key) > 1 else record
        for record, key in zip(records, seen, strict=True)
    ]
    twice = next((r.label for r in named if sum((r.data, r.label) == (o.data, o.label) for o in named) > 1), None)
    if twice is not None:
        raise InputError(
            f"two rows on the same data are both called {twice!r}",
            expected="rows that can be told apart",
            fix="call them otherwise: resight report one=A.json other=B.json",
        )
    return named


def _parse_row(label: str, evaluation: Mapping[str, Any], row: Mapping[str, Any], source: str) -> Record:
    try:
        figures = {name: _figure(figure) for name, figure in evaluation["metrics"].items()}
        judged = [query for query in evaluation["per_query"] if any(name in query for name in figures)]
        return Record(
            label=label,
            source=source,
            dataset=evaluation["dataset"],
            database=evaluation["database"],
            recipe=evaluation["recipe"],
            figures=figures,
            values={name: {query["id"]: _number(query[name]) for query in judged if name in query} for name in figures},
            facts={
                name: float(value)
                for name, value in row.items()
                if name not in NOT_FACTS and isinstance(value, (int, float))
            },
            seconds=_number(row.get("rank_seconds_a_query", evaluation.get("search_seconds_a_query"))),
            evaluation=evaluation,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise _refuse(source, f"{type(error).__name__}: {error}") from error


def _figure(values: Mapping[str, Any]) -> Figure:
    mean, low, high = (_number(values[key]) for key in ("mean", "low", "high"))
    return Figure(mean, low, high, values.get("convention", ""))


def _load(path: Path) -> Mapping[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}", expected="a file", actual=str(error), fix="check the path") from error
    except ValueError as error:
        raise _refuse(path.name, str(error)) from error
    if not isinstance(values, dict) or not ("rows" in values or "per_query" in values):
        raise _refuse(path.name, "no rows and no queries")
    schema = values.get("schema", FIRST_SCHEMA)
    if not isinstance(schema, int) or not FIRST_SCHEMA <= schema <= SCHEMA:
        raise InputError(
            f"{path.name} was written by another version of resight",
            expected=f"schema {FIRST_SCHEMA} to {SCHEMA}",
            actual=f"schema {schema}",
            fix="update resight, or evaluate again",
        )
    return values


def _refuse(source: str, actual: str) -> InputError:
    return InputError(
        f"{source} is not the file of an evaluation",
        expected="what `resight eval … --json FILE` writes",
        actual=actual,
        fix="give such files",
    )


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
