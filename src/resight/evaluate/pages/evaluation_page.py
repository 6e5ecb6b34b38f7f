"""The HTML page of an evaluation or of a report.

In: a Table and the Comparison of its rows. Out: the text of a page that stands alone: images are data: URIs, it loads
nothing from any server (except map tiles, if given), and it works without script; script adds sorting and filtering.
Without a comparison the page shows the table, its charts and its notes.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from resight.evaluate.comparison import Comparison
from resight.evaluate.evaluation import BYTES, HEADINGS, Row
from resight.evaluate.pages.charts import STYLE as CHART_STYLE
from resight.evaluate.pages.charts import Dot, Scatter, draw_chart, draw_scatter
from resight.evaluate.pages.maps import EmbeddingView, draw_embedding, map_example, map_queries
from resight.evaluate.pages.query_examples import QueryView, Thumbnails, view_query
from resight.evaluate.report_table import DataSetRows
from resight.evaluate.strata_tables import Stratum, chart_settings
from resight.evaluate.table import NOT_MEASURED, Mark, Table, explain_absent, split_figure
from resight.explain.map import SCRIPT as MAP_SCRIPT
from resight.explain.map import STYLE as MAP_STYLE
from resight.explain.tiles import Tiles
from resight.files.fingerprint import csp_hash

TAGS: dict[Mark | None, str] = {"best": "strong", "second": "u", None: ""}
MOST_TILES = 6


@dataclass(frozen=True)
class Tile:
    """A headline figure."""

    name: str
    value: str
    beside: str


@dataclass(frozen=True)
class DataView:
    """The part of the page about one data set."""

    name: str
    anchor: str
    charts: list[Markup]
    strata: list[tuple[Markup, Table]]
    shown: str  # the configuration whose queries and map are shown
    metric: str
    worst: list[QueryView]
    best: list[QueryView]
    map: EmbeddingView | None
    positions: Markup | None


@dataclass(frozen=True)
class Setup:
    """How a row was made."""

    label: str
    dataset: str
    recipe: str
    facts: dict[str, str]


def render(table: Table, comparison: Comparison | None = None, subtitle: str = "", tiles: Tiles | None = None) -> str:
    """With `tiles`, the page loads map tiles from their server."""
    data = comparison.data if comparison else ()
    strata = comparison.strata if comparison else ()
    thumbnails = Thumbnails()
    views = [
        _view(part, strata[number], number, thumbnails, not table.charts, tiles) for number, part in enumerate(data)
    ]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"digest": csp_hash, "cell": _mark_up}
    environment.globals["split_figure"] = split_figure
    template = environment.from_string(
        (resources.files(__package__) / "evaluation_page.html").read_text(encoding="utf-8")
    )
    return template.render(
        table=table,
        subtitle=subtitle,
        tiles=_list_tiles(data),
        charts=[Markup(draw_chart(chart)) for chart in table.charts],  # nosec B704  # our own SVG, style or script; its texts are escaped
        views=views,
        absent=explain_absent(table),
        not_measured=NOT_MEASURED,
        setups=[_describe_setup(row) for row in (comparison.rows if comparison else ())],
        chart_style=Markup(CHART_STYLE + MAP_STYLE),  # nosec B704  # our own SVG, style or script; its texts are escaped
        map_script=Markup(MAP_SCRIPT),  # nosec B704  # our own SVG, style or script; its texts are escaped
        tile_server=tiles.origin if tiles else "",
    )


def _view(
    part: DataSetRows,
    strata: Sequence[Stratum],
    number: int,
    thumbnails: Thumbnails,
    with_plots: bool,
    tiles: Tiles | None,
) -> DataView:
    """A table with charts of its own, such as a curve, gets no others."""
    shown = _find_best(part)
    examples = shown.summary.examples
    mapped = next((row for row in [shown, *part.rows] if row.summary.map), None)
    worst, best = (
        [
            view_query(
                query,
                examples.metric,
                thumbnails,
                map_example(query, shown.summary, f"map-{number}-{kind}-{position}", tiles),
            )
            for position, query in enumerate(queries)
        ]
        for kind, queries in (("worst", examples.worst), ("best", examples.best))
    )
    return DataView(
        part.name,
        f"data-{number}",
        _draw_plots(part) if with_plots else [],
        [_draw_stratum(stratum) for stratum in strata],
        shown.label if len(part.rows) > 1 else "",
        examples.metric,
        worst,
        best,
        draw_embedding(mapped.summary.map, mapped.label) if mapped and mapped.summary.map else None,
        map_queries(shown.summary, f"map-{number}", tiles),
    )


def _find_best(part: DataSetRows) -> Row:
    return max(part.rows, key=lambda row: _sortable(row.summary.figures[part.metric].mean))


def _draw_stratum(stratum: Stratum) -> tuple[Markup, Table]:
    return Markup(draw_chart(stratum.chart)), stratum.table  # nosec B704  # our own SVG, style or script; its texts are escaped


def _draw_plots(part: DataSetRows) -> list[Markup]:
    return [*_draw_costs(part), *(Markup(draw_chart(chart)) for chart in chart_settings(part.rows, part.metric))]  # nosec B704  # our own SVG, style or script; its texts are escaped


def _draw_costs(part: DataSetRows) -> list[Markup]:
    """Quality against bytes and against time, if there are several rows."""
    if len(part.rows) < 2:
        return []
    costs = (
        (HEADINGS[BYTES], [row.facts[BYTES].value if BYTES in row.facts else math.nan for row in part.rows]),
        ("ms per query", [1000 * row.median_seconds for row in part.rows]),
    )
    figures = []
    for name, values in costs:
        dots = tuple(
            Dot(row.label, cost, row.summary.figures[part.metric].mean)
            for row, cost in zip(part.rows, values, strict=True)
            if cost > 0 and not math.isnan(row.summary.figures[part.metric].mean)
        )
        if len({dot.cost for dot in dots}) > 1:
            figures.append(Markup(draw_scatter(Scatter(f"{part.metric} against {name}", name, part.metric, dots))))  # nosec B704  # our own SVG, style or script; its texts are escaped
    return figures


def _list_tiles(data: Sequence[DataSetRows]) -> list[Tile]:
    """The figures of a single row; of many rows, the best one on each data set."""
    if len(data) == 1 and len(data[0].rows) == 1:
        (row,) = data[0].rows
        return [
            Tile(name, f"{figure.mean:.3f}", f"{figure.low:.3f} to {figure.high:.3f}")
            for name, figure in list(row.summary.figures.items())[:MOST_TILES]
            if not math.isnan(figure.mean)
        ]
    tiles = []
    for part in data[:MOST_TILES]:
        best = _find_best(part)
        words = f"best {part.metric}" + (f" on {part.name}" if len(data) > 1 else "")
        tiles.append(Tile(words, f"{best.summary.figures[part.metric].mean:.3f}", best.label))
    return tiles


def _describe_setup(row: Row) -> Setup:
    summary, made = row.summary, row.summary.provenance
    facts = {
        "File": row.source,
        "Made by": made.made_by,
        "Machine": made.machine if isinstance(made.machine, str) else _format_machine(made.machine),
        "Versions": ", ".join(f"{name} {version}" for name, version in made.versions.items()),
        "Seeds": ", ".join(f"{name} {seed}" for name, seed in made.seeds.items()),
        "Indexing": "" if summary.index_seconds is None else f"{summary.index_seconds:.1f} s",
    }
    recipe = json.dumps(summary.recipe, indent=1, ensure_ascii=False, default=str)
    return Setup(row.label, summary.dataset, recipe, {name: text for name, text in facts.items() if text})


def _format_machine(machine: Mapping[str, Any]) -> str:
    memory = machine.get("memory_bytes")
    parts = [
        machine.get("cpu"),
        f"{machine.get('cores')} cores" if machine.get("cores") else "",
        f"{memory / 2**30:.1f} GiB" if memory else "",
        machine.get("system"),
    ]
    return ", ".join(str(part) for part in parts if part)


def _mark_up(cell: str, mark: Mark | None) -> Markup:
    """The figure with its mark, and the text beside it in small letters."""
    figure, beside = split_figure(cell)
    tag = TAGS[mark]
    marked = Markup(f"<{tag}>{{}}</{tag}>").format(figure) if tag else Markup("{}").format(figure)  # nosec B704  # our own SVG, style or script; its texts are escaped
    return marked + Markup("<small>{}</small>").format(beside) if beside else marked


def _sortable(value: float) -> float:
    return -math.inf if math.isnan(value) else value
