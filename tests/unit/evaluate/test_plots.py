"""Plots show the figures that they are given."""

from pathlib import Path

import numpy as np
import pytest

from resight.errors import InputError
from resight.evaluate.plots import plot_charts, plot_figures
from resight.evaluate.table import Chart, Line

pytest.importorskip("matplotlib")
ROWS = {"sift": {"ap": (0.5, 0.4, 0.6), "recall@1": (0.7, 0.5, 0.8)}, "tokens": {"ap": (0.6, 0.5, 0.65)}}


def test_a_panel_per_metric_has_a_dot_and_an_interval_per_row(tmp_path: Path) -> None:
    figure = plot_figures(ROWS)
    (panel,) = figure.axes  # the metric that both rows have
    assert panel.get_title() == "ap"
    assert [label.get_text() for label in panel.get_yticklabels()] == ["sift", "tokens"]
    np.testing.assert_allclose(panel.lines[0].get_xdata(), [0.5, 0.6])
    (bars,) = panel.collections
    np.testing.assert_allclose([line[:, 0] for line in bars.get_segments()], [(0.4, 0.6), (0.5, 0.65)])
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 1000


def test_an_unknown_metric_is_refused_with_those_that_all_rows_have() -> None:
    with pytest.raises(InputError, match="recall@1") as caught:
        plot_figures(ROWS, ["recall@1"])
    assert "ap" in str(caught.value)


def test_a_chart_is_drawn_line_by_line() -> None:
    lines = (Line("ap", (0.5, float("nan"), 0.7)), Line("recall", (0.1, 0.2, 0.3), ((0, 0.2), (0.1, 0.3), (0.2, 0.4))))
    figure = plot_charts([Chart("shortlist", "images", (1, 2, 3), ("1", "2", "3"), lines, floor=(0.6, "least"))])
    (panel,) = figure.axes
    assert [text.get_text() for text in panel.get_legend().get_texts()] == ["least", "ap", "recall"]
    assert panel.get_xlabel() == "images"
