"""One HTML page of an evaluation or of many: a Table and the Records that it is about in, the text of a page out.

The page stands alone: pictures are data: URIs, it asks nothing of any server, and it can be read without script; script
adds sorting and filtering. Without records it shows the table, its charts and its notes.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from resight.evaluate.pages.charts import STYLE as CHART_STYLE
from resight.evaluate.pages.charts import STYLE_SCATTER as SCATTER_STYLE
from resight.evaluate.pages.charts import Dot, Scatter, draw, draw_scatter
from resight.evaluate.pages.maps import MapView, map_all, map_query, view_map
from resight.evaluate.pages.query_examples import QueryView, Thumbnails, view_query
from resight.evaluate.pages.strata_tables import Stratum, draw_strata, draw_sweeps
from resight.evaluate.records import Record
from resight.evaluate.report_table import BYTES, DataColumns, gather_data
from resight.evaluate.table import NOT_MEASURED, Mark, Table, explain_absent, split_figure
from resight.explain.map import SCRIPT as MAP_SCRIPT
from resight.explain.map import STYLE as MAP_STYLE
from resight.explain.tiles import Tiles
from resight.files.fingerprint import csp_hash

TAGS: dict[Mark | None, str] = {"best": "strong", "second": "u", None: ""}
MOST_TILES = 6


@dataclass(frozen=True)
class Tile:
    """One figure that a reader looks for first."""

    name: str
    value: str
    beside: str


@dataclass(frozen=True)
class DataView:
    """What the page shows of one data set."""

    name: str
    anchor: str
    charts: list[Markup]
    strata: list[tuple[Markup, Table]]
    shown: str  # the configuration that queries and map are of
    metric: str
    worst: list[QueryView]
    best: list[QueryView]
    map: MapView | None
    places: Markup | None


@dataclass(frozen=True)
class Setup:
    """How a row was made."""

    label: str
    dataset: str
    recipe: str
    facts: dict[str, str]


def render(
    table: Table, records: Sequence[Record] = (), metric: str = "", subtitle: str = "", tiles: Tiles | None = None
) -> str:
    """`metric` is that of the plots; none: the first. With `tiles`, the page asks their server for pictures."""
    data = gather_data(records, metric) if records else []
    thumbnails = Thumbnails()
    views = [_view(part, number, thumbnails, not table.charts, tiles) for number, part in enumerate(data)]
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
        charts=[Markup(draw(chart)) for chart in table.charts],
        views=views,
        absent=explain_absent(table),
        not_measured=NOT_MEASURED,
        setups=[_describe(record) for record in records],
        chart_style=Markup(CHART_STYLE + SCATTER_STYLE + MAP_STYLE),
        map_script=Markup(MAP_SCRIPT),
        tile_server=tiles.origin if tiles else "",
    )


def _view(part: DataColumns, number: int, thumbnails: Thumbnails, plotted: bool, tiles: Tiles | None) -> DataView:
    """A table that has charts of its own, as a curve has, gets no others."""
    shown = max(part.records, key=lambda record: _sortable(record.figures[part.judged].mean))
    examples = shown.evaluation.get("examples") or {}
    mapped = next((record for record in [shown, *part.records] if record.evaluation.get("map")), None)
    metric = examples.get("metric", "")
    positions = shown.evaluation.get("positions") or {}
    worst, best = (
        [
            view_query(values, metric, thumbnails, map_query(values, positions, f"map-{number}-{kind}-{place}", tiles))
            for place, values in enumerate(examples.get(kind, ()))
        ]
        for kind in ("worst", "best")
    )
    return DataView(
        part.name,
        f"data-{number}",
        _draw_plots(part) if plotted else [],
        [_draw_stratum(stratum) for stratum in draw_strata(part.records, part.judged)],
        shown.label if len(part.records) > 1 else "",
        metric,
        worst,
        best,
        None if mapped is None else view_map(mapped.evaluation["map"], mapped.label),
        map_all(shown.evaluation, f"map-{number}", tiles),
    )


def _draw_stratum(stratum: Stratum) -> tuple[Markup, Table]:
    return Markup(draw(stratum.chart)), stratum.table


def _draw_plots(part: DataColumns) -> list[Markup]:
    return [*_draw_costs(part), *(Markup(draw(chart)) for chart in draw_sweeps(part.records, part.judged))]


def _draw_costs(part: DataColumns) -> list[Markup]:
    """Quality against bytes and against time, where there are rows to choose from."""
    if len(part.records) < 2:
        return []
    costs = (
        ("bytes an image", [record.facts.get(BYTES, math.nan) for record in part.records]),
        ("ms a query", [1000 * record.seconds for record in part.records]),
    )
    figures = []
    for name, values in costs:
        dots = tuple(
            Dot(record.label, cost, record.figures[part.judged].mean)
            for record, cost in zip(part.records, values, strict=True)
            if cost > 0 and not math.isnan(record.figures[part.judged].mean)
        )
        if len({dot.cost for dot in dots}) > 1:
            figures.append(Markup(draw_scatter(Scatter(f"{part.judged} against {name}", name, part.judged, dots))))
    return figures


def _list_tiles(data: Sequence[DataColumns]) -> list[Tile]:
    """The figures of a single row; of many rows, the best one on each data set."""
    if len(data) == 1 and len(data[0].records) == 1:
        (record,) = data[0].records
        return [
            Tile(name, f"{figure.mean:.3f}", f"{figure.low:.3f} to {figure.high:.3f}")
            for name, figure in list(record.figures.items())[:MOST_TILES]
            if not math.isnan(figure.mean)
        ]
    tiles = []
    for part in data[:MOST_TILES]:
        best = max(part.records, key=lambda record: _sortable(record.figures[part.judged].mean))
        words = f"best {part.judged}" + (f" on {part.name}" if len(data) > 1 else "")
        tiles.append(Tile(words, f"{best.figures[part.judged].mean:.3f}", best.label))
    return tiles


def _describe(record: Record) -> Setup:
    values = record.evaluation
    machine = values.get("machine", "")
    facts = {
        "File": record.source,
        "Made by": values.get("made_by", ""),
        "Machine": _say_machine(machine) if isinstance(machine, dict) else str(machine),
        "Versions": ", ".join(f"{name} {version}" for name, version in values.get("versions", {}).items()),
        "Seeds": ", ".join(f"{name} {seed}" for name, seed in values.get("seeds", {}).items()),
        "Indexing": f"{values['index_seconds']:.1f} s" if "index_seconds" in values else "",
    }
    recipe = json.dumps(record.recipe, indent=1, ensure_ascii=False, default=str)
    return Setup(record.label, record.dataset, recipe, {name: text for name, text in facts.items() if text})


def _say_machine(machine: dict[str, Any]) -> str:
    memory = machine.get("memory_bytes")
    parts = [
        machine.get("cpu"),
        f"{machine.get('cores')} cores" if machine.get("cores") else "",
        f"{memory / 2**30:.1f} GiB" if memory else "",
        machine.get("system"),
    ]
    return ", ".join(str(part) for part in parts if part)


def _mark_up(cell: str, mark: Mark | None) -> Markup:
    """The figure with its mark; what stands beside it is quiet."""
    figure, beside = split_figure(cell)
    tag = TAGS[mark]
    marked = Markup(f"<{tag}>{{}}</{tag}>").format(figure) if tag else Markup("{}").format(figure)
    return marked + Markup("<small>{}</small>").format(beside) if beside else marked


def _sortable(value: float) -> float:
    return -math.inf if math.isnan(value) else value
