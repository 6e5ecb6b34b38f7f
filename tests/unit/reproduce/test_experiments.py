"""The recipes that the cells of a table stand for."""

from dataclasses import replace

from resight.reproduce.experiments import list_experiments
from resight.reproduce.paper_table import Best, Column, PaperRow, PaperTable

RECIPE = {
    "data": "manifest",
    "index": "exact",
    "branches": [{"encoder": "sift", "descriptor": {"name": "vlad", "words": 64}}],
}
TABLE = PaperTable(
    "paper/table_1",
    "title",
    "source",
    "retrieval",
    recipe=RECIPE,
    columns=(
        Column("mAP", "ap"),
        Column("R@1", "recall@1"),
        Column("bytes", "bytes_per_image"),
        Column("net", text=True),
    ),
    rows=(PaperRow("first", set=("branches.0.descriptor.words=4",)), PaperRow("second")),
)


def test_cells_with_the_same_recipe_share_an_experiment() -> None:
    first, second = list_experiments(TABLE, TABLE.rows)
    assert first.cells == (("first", "mAP"), ("first", "R@1"), ("first", "bytes"))
    assert first.recipe is not None
    assert first.recipe.metrics == ("ap", "recall@1")  # a fact needs no metric
    assert first.recipe.branches[0].descriptor.settings == {"words": 4}
    assert second.recipe is not None
    assert second.recipe.branches[0].descriptor.settings == {"words": 64}
    assert RECIPE["branches"][0]["descriptor"]["words"] == 64  # type: ignore[index]


def test_the_order_is_recipe_row_column_alternative_user() -> None:
    word = "branches.0.descriptor.words={}".format
    row = PaperRow("row", set=(word(1),), recipe={"index": "hnsw"})
    column = Column("mAP", "ap", set=(word(2),), recipe={"data": "museum"})
    table = replace(TABLE, columns=(column,), rows=(row,))
    (made,) = list_experiments(table, [row])
    assert (made.table["index"], made.table["data"]) == ("hnsw", "museum")
    assert made.table["branches"][0]["descriptor"]["words"] == 2
    best = replace(column, best=Best("recall@1", ((word(3),), (word(4),))))
    three, four = list_experiments(replace(table, columns=(best,)), [row])
    assert [each.table["branches"][0]["descriptor"]["words"] for each in (three, four)] == [3, 4]
    assert three.table["metrics"] == ["ap", "recall@1"]  # the one that decides is measured, too
    (last,) = list_experiments(replace(table, columns=(best,)), [row], [word(5)])
    assert last.table["branches"][0]["descriptor"]["words"] == 5


def test_the_best_of_the_column_counts_before_that_of_row_and_table() -> None:
    over = [Best("ap", ((f"index.links={number}",),)) for number in range(3)]
    column, row = Column("mAP", "ap", best=over[0]), PaperRow("row", best=over[1])
    table = replace(TABLE, columns=(column,), rows=(row,), best=over[2])
    found = [
        list_experiments(part, part.rows)[0].table["index"]["links"]
        for part in (
            table,
            replace(table, columns=(Column("mAP", "ap"),)),
            replace(table, columns=(Column("mAP", "ap"),), rows=(PaperRow("row"),)),
        )
    ]
    assert found == [0, 1, 2]


def test_a_bad_setting_costs_its_own_cells_only() -> None:
    rows = (PaperRow("bad", set=("branches.7.weight=1",)), PaperRow("wrong", set=("colour=red",)), PaperRow("good"))
    bad, wrong, good = list_experiments(replace(TABLE, rows=rows), rows)
    assert bad.recipe is None and bad.problem is not None and "leads nowhere" in bad.problem.problem
    assert wrong.recipe is None and wrong.problem is not None and "colour" in wrong.problem.problem
    assert good.recipe is not None


def test_a_row_that_nobody_can_measure_has_no_experiment() -> None:
    assert list_experiments(TABLE, [PaperRow("closed", skip="not public")]) == []
