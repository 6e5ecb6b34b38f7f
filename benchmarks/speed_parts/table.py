"""Rows → a table for the terminal."""

from collections.abc import Sequence

from speed_parts.results import Row

COLUMNS = ("work", "tokens", "peer", "ratio", "bar", "", "answers")


def show(rows: Sequence[Row]) -> str:
    cells = [COLUMNS, *(describe(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(COLUMNS))]
    lines = [" | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return "\n".join([lines[0], "-|-".join("-" * width for width in widths), *lines[1:]])


def describe(row: Row) -> tuple[str, ...]:
    return (row.work, row.tokens, row.peer, size(row, row.ratio), size(row, row.bar), row.verdict, row.answers)


def size(row: Row, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0%}" if row.share else f"{value:.2f}×"
