"""Figures and curves drawn by matplotlib (extra `plots`): values with intervals, or Charts, in; a Figure out.

The figure is not shown: a notebook shows the value of a cell, and `figure.savefig` writes a file.
"""

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from resight.errors import InputError, MissingExtra, install_extra
from resight.evaluate.table import Chart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Span = tuple[float, float, float]  # value, and the ends of its interval
PANEL, LINE = (3.2, 3.0), 0.35  # inches of a panel, and of a row


def plot_figures(rows: Mapping[str, Mapping[str, Span]], metrics: Sequence[str] = ()) -> "Figure":
    """A panel per metric, with a row per label: the value as a dot, and its interval as a line."""
    shared = [name for name in next(iter(rows.values()), {}) if all(name in spans for spans in rows.values())]
    unknown = [name for name in metrics if name not in shared]
    if unknown or not shared:
        raise InputError(
            f"no figures of {', '.join(unknown) or 'any metric'}",
            expected=f"metrics that all rows have: {', '.join(shared)}",
            actual=", ".join(metrics),
            fix="choose among these",
        )
    names = list(metrics or shared)
    height = max(1.4, 0.8 + LINE * len(rows))
    figure, panels = _open_figure(len(names), height)
    places = np.arange(len(rows))[::-1]
    for panel, name in zip(panels, names, strict=True):
        spans = np.array([spans[name] for spans in rows.values()], dtype=np.float64)
        ends = np.abs(spans[:, 1:].T - spans[:, 0])
        panel.errorbar(spans[:, 0], places, xerr=ends, fmt="o", capsize=3)
        panel.set_title(name)
        panel.set_ylim(-0.6, len(rows) - 0.4)
        panel.set_yticks(places, list(rows))
        panel.grid(axis="x", alpha=0.3)
    return figure


def plot_charts(charts: Sequence[Chart]) -> "Figure":
    """A panel per chart, with its lines and their intervals."""
    figure, panels = _open_figure(len(charts), PANEL[1], shared=False)
    for panel, chart in zip(panels, charts, strict=True):
        for line in chart.lines:
            ends = np.abs(np.array(line.intervals).T - np.array(line.values)) if line.intervals else None
            panel.errorbar(chart.positions, line.values, yerr=ends, marker="o", capsize=3, label=line.name)
        if chart.floor is not None:
            panel.axhline(chart.floor[0], linestyle="--", color="grey", label=chart.floor[1])
        panel.set_title(chart.title)
        panel.set_xlabel(chart.x_label)
        panel.set_xticks(list(chart.positions), list(chart.ticks))
        panel.grid(alpha=0.3)
        if chart.lines:
            panel.legend(fontsize="small")
    return figure


def _open_figure(panels: int, height: float, shared: bool = True) -> tuple["Figure", list[Any]]:
    try:
        pyplot: Any = importlib.import_module("matplotlib.pyplot")
    except ImportError as error:
        raise MissingExtra(
            "plots need matplotlib",
            expected="the extra plots",
            actual="matplotlib is not installed",
            fix=f"{install_extra('plots')}, or pip install matplotlib",
        ) from error
    figure, axes = pyplot.subplots(
        1, panels, figsize=(PANEL[0] * panels + 0.8, height), sharey=shared, squeeze=False, layout="constrained"
    )
    pyplot.close(figure)  # else a notebook would show it twice
    return figure, list(axes[0])
