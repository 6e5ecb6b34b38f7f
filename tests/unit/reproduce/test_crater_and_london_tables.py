"""The tables of CraterBench-R and of the MSLS London study: their shape, and figures that the papers repeat."""

import pytest

from resight.reproduce.experiments import list_experiments
from resight.reproduce.kinds.gains import list_models
from resight.reproduce.paper_table import PaperTable, list_tables, load_table

SHAPES = {  # rows and figures that the paper prints; those that stand twice, for both recalls, count once
    "craterbench/table_5": (30, 150),
    "craterbench/table_6": (22, 176),
    "craterbench/table_7": (11, 44),
    "craterbench/table_8": (7, 28),
    "craterbench/table_9": (5, 43),
    "craterbench/table_10": (5, 43),
    "craterbench/table_11": (5, 40),
    "craterbench/table_12": (5, 20),
    "craterbench/table_13": (5, 30),
    "msls_london/table_1": (9, 18),
    "msls_london/table_2": (5, 10),
    "msls_london/table_3": (4, 8),
    "msls_london/table_4": (3, 24),
    "msls_london/table_5": (14, 112),
    "msls_london/table_6": (5, 40),
    "msls_london/table_7": (19, 76),
    "msls_london/table_8": (4, 32),
    "msls_london/table_9": (4, 32),
    "msls_london/table_10": (5, 40),
    "msls_london/table_11": (5, 40),
    "msls_london/table_12": (14, 70),
    "msls_london/table_13": (19, 76),
    "msls_london/table_14": (5, 25),
}
SHARE = " (share of positives)"


def read(table: PaperTable, row: str, column: str) -> float | None:
    number = [each.name for each in table.columns].index(column)
    return next(each for each in table.rows if each.name == row).published[number].value


@pytest.mark.parametrize(("name", "shape"), SHAPES.items())
def test_every_row_and_figure_of_the_paper_is_there(name: str, shape: tuple[int, int]):
    table = load_table(name)
    printed = [
        sum(
            cell.value is not None
            for cell, column in zip(row.published, table.columns, strict=True)
            if not column.name.endswith(SHARE)
        )
        for row in table.rows
    ]
    assert (sum(count > 0 for count in printed), sum(printed)) == shape


def test_no_table_lacks():
    names = {*list_tables("craterbench"), *list_tables("msls_london")}
    assert names == {*SHAPES, "craterbench/two_stages", "craterbench/abstract"}


@pytest.mark.parametrize("name", list_tables("craterbench"))
def test_every_recall_of_craterbench_has_both_conventions_and_the_same_printed_figure(name: str):
    table = load_table(name)
    columns = {column.name: column for column in table.columns}
    recalls = [column for column in table.measured if column.metric.startswith("recall@")]
    for column in recalls:
        other = columns[column.name + SHARE]
        assert other.metric == column.metric.replace("recall", "recall_fraction")
        assert (other.set, other.best) == (column.set, column.best)
        for row in table.rows:
            assert read(table, row.name, column.name) == read(table, row.name, other.name)


def test_figures_that_tables_share_are_equal():
    five, six, seven = (load_table(f"craterbench/table_{number}") for number in (5, 6, 7))
    for row in six.rows:
        pool = next(each for each in five.rows if each.name == row.name).published[2].text
        assert read(five, row.name, "mAP") == read(six, row.name, f"{pool} mAP")
    for row in seven.rows:
        model, _, pool = row.name.partition(", ")
        printed = next(each for each in five.rows if each.name == model)
        if printed.published[2].text == pool:
            assert read(five, model, "mAP") == read(seven, row.name, "mAP")
    nine, eleven, thirteen = (load_table(f"craterbench/table_{number}") for number in (9, 11, 13))
    for k in (4, 8, 16, 32, 64):
        best = max(
            read(nine, f"K = {k}", f"{name} mAP") or 0
            for name in ("hard_top1", "soft_top2", "soft_top4", "group_dense")
        )
        assert best == max(read(eleven, f"K = {k}", f"DINO {seeds} mAP") or 0 for seeds in ("Attention", "FPS"))
        assert read(thirteen, f"K = {k}", "DINO Late") == read(eleven, f"K = {k}", "DINO Attention mAP")
    recall, ap, gps = (load_table(f"msls_london/table_{number}") for number in (7, 13, 8))
    for row in recall.rows:
        assert read(recall, row.name, "R@1") == read(ap, row.name, "mAP@1")  # both are the first answer's
    assert read(gps, "Baseline (No GPS)", "R@20") == read(recall, "ViT-H/16+ (GeM)", "R@20")


def test_gem_of_the_study_has_no_clamp_and_a_clamped_twin():
    for name in ("msls_london/table_7", "msls_london/table_8", "msls_london/table_9", "msls_london/table_13"):
        table = load_table(name)
        for experiment in list_experiments(table, table.rows):
            clamped = "clamped" in experiment.cells[0][0]
            text = str(experiment.table["branches"])
            assert text.count("signed") == (0 if clamped else text.count("'gem'"))
    assert [row.name for row in list_models(load_table("msls_london/table_12"))][:2] == [
        "StreetCLIP",
        "CLIP-base-patch16",
    ]


@pytest.mark.parametrize(
    ("name", "row", "column"),
    [
        ("msls_london/table_7", "ViT-L/16 (Max)", "R@1"),
        ("msls_london/table_7", "ViT-S/16+ (CLS)", "R@1"),
        ("msls_london/table_7", "CNX-S (GeM)", "R@1"),
        ("msls_london/table_12", "vitl16", "Max"),
        ("msls_london/table_12", "Overall Average", "CLS"),
        ("msls_london/table_14", "20-NN", "P10"),
        ("msls_london/table_10", "GeM", "R@1"),
    ],
)
def test_contradictory_figures_are_marked(name: str, row: str, column: str):
    table = load_table(name)
    number = [each.name for each in table.columns].index(column)
    assert next(each for each in table.rows if each.name == row).published[number].doubt
