"""What results of an evaluation offer: their table as LaTeX, Markdown and in a notebook; a data frame; a plot."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from resight.evaluate.summary import Summary
from resight.evaluate.table import Table, to_latex, to_markdown
from resight.frames import make_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class HasTable(Protocol):
    @property
    def table(self) -> Table: ...


class Presentable:
    """A result with a `table`."""

    def to_latex(self: HasTable) -> str:
        """Convert the table to LaTeX, for the package booktabs.

        Returns:
            A tabular; title and notes are remarks before it.
        """
        return to_latex(self.table)

    def to_markdown(self: HasTable) -> str:
        """Convert the table to Markdown.

        Returns:
            Title, table and notes.
        """
        return to_markdown(self.table)

    def _repr_html_(self: HasTable) -> str:
        from resight.explain.notebook import draw_table

        table = self.table
        notes = ([table.answer] if table.answer else []) + list(table.notes)
        return draw_table(table.title, table.columns, table.rows, notes, bold=table.marks)


class SummarisedRow(Protocol):
    @property
    def label(self) -> str: ...
    @property
    def summary(self) -> Summary: ...


class HasRows(Protocol):
    @property
    def rows(self) -> Sequence[SummarisedRow]: ...


class Measured(Presentable):
    """A result whose rows have summaries."""

    def to_frame(self: HasRows, per_query: bool = False) -> Any:
        """Convert to a data frame of pandas, or of polars if only that is installed.

        Args:
            per_query: One row per query, with its values, rather than one with means and intervals.

        Returns:
            Columns label, data and queries, then each metric with METRIC_low and METRIC_high; per query: label, data,
            query, best (the first answer), probability, seconds, then each metric (NaN without a positive).
        """
        metrics = list(dict.fromkeys(name for row in self.rows for name in row.summary.figures))
        records: list[dict[str, Any]] = []
        for row in self.rows:
            first = {"label": row.label, "data": row.summary.dataset}
            if per_query:
                records += [
                    first
                    | {"query": one.id, "best": one.best, "probability": one.probability, "seconds": one.seconds}
                    | {name: one.values.get(name, float("nan")) for name in metrics}
                    for one in row.summary.queries
                ]
                continue
            figures = row.summary.figures.items()
            spans = {
                key: value
                for name, one in figures
                for key, value in ((name, one.mean), (f"{name}_low", one.low), (f"{name}_high", one.high))
            }
            records.append(first | {"queries": len(row.summary.judged)} | spans)
        names = list(dict.fromkeys(name for record in records for name in record))
        return make_frame({name: [record.get(name) for record in records] for name in names})

    def plot(self: HasRows, metrics: Sequence[str] = ()) -> "Figure":
        """Draw the figures with their intervals by matplotlib; of a curve, its lines.

        Args:
            metrics: The metrics to draw; default: all.

        Returns:
            A figure of matplotlib. A notebook shows it; `savefig` writes a file.
        """
        from resight.evaluate.plots import plot_charts, plot_figures

        charts = getattr(self, "charts", ())
        if charts and not metrics:
            return plot_charts(charts)
        several = len({row.summary.dataset for row in self.rows}) > 1
        return plot_figures(
            {
                f"{row.label}, {row.summary.dataset}" if several else row.label: {
                    name: (one.mean, one.low, one.high) for name, one in row.summary.figures.items()
                }
                for row in self.rows
            },
            metrics,
        )
