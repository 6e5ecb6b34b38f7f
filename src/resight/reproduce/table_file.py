"""The TOML file of a paper's table in, a validated PaperTable out.

Every key that the format does not know belongs to the kind: its `check(table)` validates them, if it has one. Numbers
keep the digits that the file has, so that 0.420 is shown as 0.420.
"""

import difflib
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from resight import plugins
from resight.errors import InputError, RecipeError, did_you_mean
from resight.recipe.paths import expand_here
from resight.reproduce.table_types import NONE, Best, Column, PaperRow, PaperTable, Published

KINDS = "resight.reproduce.kinds"
ALMOST = 0.85  # similarity of two keys that is taken for a slip
UNITS = ("fraction", "percent", "")  # .726, 72.6, or a plain number
TABLE_KEYS = (
    "title",
    "source",
    "kind",
    "unit",
    "data",
    "hours",
    "notes",
    "baseline",
    "like",
    "recipe",
    "columns",
    "rows",
    "best",
)
COLUMN_KEYS = ("name", "metric", "set", "recipe", "unit", "text", "best")
ROW_KEYS = ("name", "group", "set", "recipe", "published", "skip", "best")
NOT_SHARED = ("name", "rows", "metrics")  # keys of a recipe that a table does not take: its rows and columns have them


class TableReader:
    """Reads one file; every error names the file, and the row or column."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._name = name

    def read(self) -> PaperTable:
        try:
            text = self._path.read_text(encoding="utf-8")
            table = tomllib.loads(text)
            printed = tomllib.loads(text, parse_float=str)  # 0.420 stays "0.420"
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise RecipeError(
                f"{self._path} is not valid TOML", expected="TOML in UTF-8", actual=str(error), fix="correct the line"
            ) from error
        known = self._check_keys(table, TABLE_KEYS, "the table")
        kind = self._text(table, "kind", "the table", required=True)
        module = self._find_kind(kind)
        unit = self._unit(table, "the table", "fraction")
        columns = tuple(self._column(part, unit) for part in self._tables(table, "columns"))
        rows = tuple(self._rows(table, printed, columns))
        self._refuse_twice([column.name for column in columns], "columns")
        self._refuse_twice([row.name for row in rows], "rows")
        result = PaperTable(
            self._name,
            self._text(table, "title", "the table", required=True),
            self._text(table, "source", "the table", required=True),
            kind,
            unit,
            self._data(table),
            self._hours(table),
            self._texts(table, "notes", "the table"),
            self._baseline(table, rows),
            self._text(table, "like", "the table"),
            self._recipe(table, "the table"),
            columns,
            rows,
            self._best(table, "the table"),
            known,
        )
        if hasattr(module, "check"):
            try:
                module.check(result)
            except InputError as error:
                raise self._refuse(error.problem, error.expected, error.actual, error.fix) from error
        return result

    def _find_kind(self, kind: str) -> ModuleType:
        known = plugins.names(KINDS)
        if kind not in known:
            raise self._refuse(
                f"there is no kind {kind!r}",
                f"one of {', '.join(known)}",
                kind,
                did_you_mean(kind, known, "correct it"),
            )
        return plugins.find(KINDS, kind)

    def _column(self, part: Mapping[str, Any], unit: str) -> Column:
        name = self._text(part, "name", "a column", required=True)
        owner = f"the column {name!r}"
        settings = self._check_keys(part, COLUMN_KEYS, owner)
        text = part.get("text", False)
        if not isinstance(text, bool):
            raise self._refuse(f"{owner}: text does not fit", "true or false", repr(text), "correct the value")
        return Column(
            name,
            self._text(part, "metric", owner),
            self._texts(part, "set", owner),
            self._recipe(part, owner),
            self._unit(part, owner, unit),
            text,
            self._best(part, owner),
            settings,
        )

    def _rows(
        self, table: Mapping[str, Any], printed: Mapping[str, Any], columns: Sequence[Column]
    ) -> Iterator[PaperRow]:
        for number, part in enumerate(self._tables(table, "rows")):
            name = self._text(part, "name", "a row", required=True)
            owner = f"the row {name!r}"
            settings = self._check_keys(part, ROW_KEYS, owner)
            cells: list[tuple[Any, Any]] = [(NONE, NONE)] * len(columns)
            if "published" in part:
                given = part["published"]
                if not isinstance(given, list) or len(given) != len(columns):
                    raise self._refuse(
                        f"{owner} has the wrong number of published cells",
                        f"{len(columns)}, one per column: {', '.join(column.name for column in columns)}",
                        f"{len(given)}" if isinstance(given, list) else repr(given),
                        'add or remove cells; "—" stands for a cell that the paper leaves empty',
                    )
                cells = list(zip(given, printed["rows"][number]["published"], strict=True))
            yield PaperRow(
                name,
                self._text(part, "group", owner),
                self._texts(part, "set", owner),
                self._recipe(part, owner),
                tuple(
                    self._cell(*cell, column, f"{owner}, column {column.name!r}")
                    for cell, column in zip(cells, columns, strict=True)
                ),
                self._text(part, "skip", owner),
                self._best(part, owner),
                settings,
            )

    def _cell(self, value: Any, printed: Any, column: Column, owner: str) -> Published:
        doubt = ""
        if isinstance(value, Mapping):
            for key in value:
                if key not in ("value", "doubt"):
                    raise plugins.refuse_key(key, ("value", "doubt"), f"{self._path}: {owner}")
            doubt = self._text(value, "doubt", owner, required=True)
            value, printed = value.get("value", NONE), printed.get("value", NONE)
        if value == NONE:
            return Published(None, doubt, "?" if doubt else NONE)
        if column.text and isinstance(value, str):
            return Published(None, doubt, value)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return Published(None if column.text else float(value), doubt, str(printed))
        raise self._refuse(
            f"{owner}: not a cell",
            f'a number as printed, "{NONE}", or {{ value = …, doubt = "…" }}{"; or words" if column.text else ""}',
            repr(value),
            "correct the cell, or give the column text = true",
        )

    def _best(self, part: Mapping[str, Any], owner: str) -> Best | None:
        if "best" not in part:
            return None
        value = part["best"]
        over = value.get("over") if isinstance(value, Mapping) else None
        fits = isinstance(value, Mapping) and set(value) == {"by", "over"} and isinstance(value["by"], str)
        if not (fits and isinstance(over, list) and over and all(map(_is_texts, over))):
            raise self._refuse(
                f"{owner}: best does not fit",
                '{ by = "a metric", over = [["key=value", …], …] }',
                repr(value),
                "give the metric, and a list of overrides per alternative",
            )
        return Best(value["by"], tuple(tuple(alternative) for alternative in over))

    def _recipe(self, part: Mapping[str, Any], owner: str) -> dict[str, Any]:
        value = part.get("recipe", {})
        if not isinstance(value, dict):
            raise self._refuse(f"{owner}: recipe is not a table", "keys of a recipe", repr(value), "correct it")
        for key in NOT_SHARED:
            if key in value:
                raise self._refuse(
                    f"{owner}: a table's recipe has no {key!r}", "other keys of a recipe", key, "remove it"
                )
        return expand_here(value, self._path.parent)

    def _baseline(self, table: Mapping[str, Any], rows: Sequence[PaperRow]) -> str:
        names = [row.name for row in rows]
        given = self._text(table, "baseline", "the table")
        if given and given not in names:
            raise self._refuse(
                f"there is no row {given!r} for the baseline",
                f"one of {', '.join(names)}",
                given,
                did_you_mean(given, names, "check the spelling"),
            )
        return given or next(iter(names), "")

    def _data(self, table: Mapping[str, Any]) -> tuple[str, ...]:
        found = self._texts(table, "data", "the table")
        known = plugins.names("resight.data.sets") if found else []
        for name in found:
            if name not in known:
                raise self._refuse(
                    f"there is no data set {name!r}",
                    f"some of {', '.join(known)}",
                    name,
                    did_you_mean(name, known, "`resight data list` names all"),
                )
        return found

    def _hours(self, table: Mapping[str, Any]) -> float | None:
        value = table.get("hours")
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0):
            raise self._refuse("the table: hours does not fit", "a number, 0 or more", repr(value), "correct it")
        return None if value is None else float(value)

    def _unit(self, part: Mapping[str, Any], owner: str, default: str) -> str:
        value = part.get("unit", default)
        if value not in UNITS:
            expected = 'fraction, percent or "" (a plain number)'
            raise self._refuse(f"{owner} has an unknown unit", expected, repr(value), "choose one of them")
        return str(value)

    def _tables(self, table: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(part, dict) for part in value):
            raise self._refuse(f"{key} is not a list of tables", f"[[{key}]]", repr(value), "correct it")
        return value

    def _text(self, part: Mapping[str, Any], key: str, owner: str, required: bool = False) -> str:
        value = part.get(key, "")
        if not isinstance(value, str) or (required and not value.strip()):
            actual = repr(value) if key in part else "nothing"
            raise self._refuse(f"{owner} has no {key}", f"{key}: words", actual, f'add {key} = "…"')
        return value

    def _texts(self, part: Mapping[str, Any], key: str, owner: str) -> tuple[str, ...]:
        value = part.get(key, [])
        if not _is_texts(value):
            raise self._refuse(f"{owner}: {key} does not fit", f'{key} = ["…", …]', repr(value), "correct it")
        return tuple(value)

    def _check_keys(self, part: Mapping[str, Any], known: Sequence[str], owner: str) -> dict[str, Any]:
        """The further keys, which are the kind's; one that is spelt almost like a known key is refused."""
        further = {key: value for key, value in part.items() if key not in known}
        for key in further:
            close = difflib.get_close_matches(key, known, 1, ALMOST)
            if close:
                expected, fix = f"one of {', '.join(known)}, or a setting of the kind", f"did you mean {close[0]!r}?"
                raise self._refuse(f"{owner} has no setting {key!r}", expected, repr(key), fix)
        return further

    def _refuse_twice(self, names: Sequence[str], what: str) -> None:
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise self._refuse(
                f"two {what} have the same name", "names that differ", repr(twice[0]), "say what distinguishes them"
            )

    def _refuse(self, problem: str, expected: str, actual: str, fix: str) -> RecipeError:
        return RecipeError(f"{self._path}: {problem}", expected=expected, actual=actual, fix=fix)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)
