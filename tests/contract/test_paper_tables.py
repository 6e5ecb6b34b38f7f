"""Every table of every paper: its file loads, and each of its cells names plug-ins, settings and metrics that exist."""

import contextlib
from pathlib import Path

import pytest

from resight import plugins
from resight.encode import named_networks
from resight.errors import MissingWeights
from resight.evaluate import metrics
from resight.reproduce import kinds
from resight.reproduce.experiments import FACTS, list_experiments
from resight.reproduce.paper_table import list_papers, list_tables, load_table
from resight.types import Recipe

TABLES = list_tables()


@pytest.mark.parametrize("name", TABLES)
def test_a_table_loads_and_its_cells_can_be_measured(name: str) -> None:
    table = load_table(name)  # which also refuses unknown metrics, data sets, overrides and numbers of cells
    assert table.name == name
    assert set(table.data) <= set(plugins.names("resight.data.sets"))
    assert callable(kinds.find(table.kind).measure)
    assert all(len(row.published) == len(table.columns) for row in table.rows)
    if table.kind == "statement":
        assert table.notes
        return
    assert table.rows and table.measured
    if table.kind == "retrieval":
        assert table.hours is not None, "how long it takes"
        for column in table.measured:
            assert column.metric in FACTS or metrics.build(column.metric).convention
        for experiment in list_experiments(table, table.rows):
            assert experiment.problem is None
            assert experiment.recipe is not None
            check_plugins(experiment.recipe)


@pytest.mark.parametrize("name", [name for name in TABLES if load_table(name).like])
def test_a_table_like_another_has_its_rows_and_columns(name: str) -> None:
    table = load_table(name)
    like = load_table(table.like)
    assert any(cell.value is not None for row in like.rows for cell in row.published)
    if table.kind == "retrieval":  # other kinds may cite a table whose rows are no cells of theirs
        for ours, theirs in ((table.rows, like.rows), (table.columns, like.columns)):
            shared = {str(part.settings.get("like", part.name)) for part in ours} & {part.name for part in theirs}
            assert shared, f"nothing of {name} is in {like.name}"


def test_the_papers_have_tables() -> None:
    assert {"cider", "craterbench", "msls_london", "patchify"} <= set(list_papers())


def test_the_docs_count_the_published_figures() -> None:
    tables = [load_table(name) for name in TABLES if not name.startswith("moonbench/")]
    cells = [cell for table in tables for row in table.rows for cell in row.published]
    printed = [cell for cell in cells if cell.value is not None]
    doubted = sum(bool(cell.doubt) for cell in printed)
    unreadable = sum(bool(cell.doubt) for cell in cells) - doubted
    holding = sum(any(cell.value is not None for row in table.rows for cell in row.published) for table in tables)
    text = " ".join((Path(__file__).parents[2] / "docs" / "papers" / "index.md").read_text(encoding="utf-8").split())
    assert f"hold {len(printed):,} published figures" in text, (len(printed), holding)
    assert f"{doubted} figures carry a doubt" in text and f"{unreadable} further cells cannot be read" in text


def check_plugins(recipe: Recipe) -> None:
    """The plug-ins of a recipe exist, and take its settings."""
    choices = [("resight.index", recipe.index)]
    choices += [("resight.search.fusions", recipe.fusion)] if recipe.fusion else []
    choices += [("resight.data.sets", recipe.data)] if recipe.data else []
    choices += [("resight.search.rerankers", choice) for choice in recipe.rerankers]
    for branch in recipe.branches:
        choices += [("resight.encode.descriptors", branch.descriptor)]
        choices += [("resight.index", branch.index)] if branch.index else []
        regions = (branch.regions, branch.query_regions)
        choices += [("resight.encode.descriptors.regions", part) for part in regions if part]
        choices += [("resight.encode.transforms", choice) for choice in branch.transforms]
        with contextlib.suppress(MissingWeights):  # of a network whose weights users bring along
            choices += [("resight.encode.backbones", named_networks.resolve_branch(branch).encoder)]
    for package, choice in choices:
        plugins.configure(plugins.find(package, choice.name).Config, choice.settings, choice.name)
