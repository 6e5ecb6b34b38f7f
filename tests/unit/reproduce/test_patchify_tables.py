"""Published figures of Patchify: the same figure in several places, and what the arithmetic of a table implies."""

import pytest

from resight import plugins
from resight.encode import named_networks
from resight.reproduce.experiments import list_experiments
from resight.reproduce.paper_table import PaperTable, list_tables, load_table

NAMES = [
    *(f"patchify/table_{number}" for number in (2, 4, 5, 6, 7, 8, 9)),
    *(f"patchify/figure_s{number}" for number in range(1, 12)),
    "patchify/figure_3",
    "patchify/reranking_grid",
]
DELTAS = ("LocScore(0.3)", "LocScore(0.4)", "LocScore(0.5)")
ENCODERS = {"CLIP": "OpenCLIP", "ConvNeXt": "ConvNeXt IN-1k"}  # table 4 → tables 8 and 9
LEVELS = {"global": "L0", "local": "L3"}


def read(*names: str) -> dict[tuple[str, str], float]:
    """Row and column → the printed figure, of the cells that can be read."""
    return {
        (row.name, column.name): cell.value
        for name in names
        for table in [load_table(f"patchify/{name}")]
        for row in table.rows
        for column, cell in zip(table.columns, row.published, strict=True)
        if cell.value is not None
    }


def list_doubts(table: PaperTable) -> dict[tuple[str, str], str]:
    return {
        (row.name, column.name): cell.doubt
        for row in table.rows
        for column, cell in zip(table.columns, row.published, strict=True)
        if cell.doubt
    }


def test_every_table_and_figure_has_a_file() -> None:
    assert sorted(list_tables("patchify")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_recipes_name_plug_ins_and_settings_that_exist(name: str) -> None:
    table = load_table(name)
    for experiment in list_experiments(table, table.rows):
        recipe = experiment.recipe
        if recipe is None:  # a difference of two columns
            assert table.kind == "strata"
            continue
        chosen = [("resight.index", recipe.index), ("resight.data.sets", recipe.data)]
        chosen += [("resight.search.rerankers", choice) for choice in recipe.rerankers]
        for branch in recipe.branches:
            chosen.append(("resight.encode.descriptors", branch.descriptor))
            chosen += [("resight.encode.descriptors.regions", branch.regions)] if branch.regions else []
            named_networks.resolve(branch.encoder)
        for package, choice in chosen:
            assert choice is not None
            plugins.configure(plugins.find(package, choice.name).Config, choice.settings, choice.name)


def test_tables_8_and_9_have_every_encoder_level_and_metric() -> None:
    figures = read("table_8", "table_9")
    rows = {row for row, _ in figures}
    assert len(rows) == 8 * 4 and {row.rpartition(", ")[2] for row in rows} == {"L0", "L1", "L2", "L3"}
    unreadable = 8
    assert len(figures) == 8 * 4 * 12 - unreadable


@pytest.mark.parametrize("name", ["table_8", "table_9"])
@pytest.mark.parametrize("data", ["INSTRE", "ILIAS"])
def test_mlocscore_is_the_mean_of_the_three_thresholds(name: str, data: str) -> None:
    figures = read(name)
    compared = 0
    for row in {row for row, _ in figures}:
        parts = [figures.get((row, f"{data} {delta}")) for delta in DELTAS]
        if None in parts:
            continue
        compared += 1
        first, second, third = (part for part in parts if part is not None)
        assert first > second > third
        assert (first + second + third) / 3 == pytest.approx(figures[row, f"{data} mLocScore"], abs=0.0011), row
        assert figures[row, f"{data} LocScore"] < figures[row, f"{data} mAP"]
    assert compared >= (12 if name == "table_8" else 16)


def test_table_4_rounds_tables_8_and_9_but_for_the_marked_cells() -> None:
    table = load_table("patchify/table_4")
    doubts = list_doubts(table)
    assert set(doubts) == {("VGG16, global", "INSTRE mAP"), ("CLIP, global", "INSTRE mAP")}
    whole = read("table_8", "table_9")
    for (row, column), value in read("table_4").items():
        if column == "dimensions" or (row, column) in doubts:
            continue
        encoder, _, kind = row.partition(", ")
        assert value == pytest.approx(whole[f"{ENCODERS.get(encoder, encoder)}, {LEVELS[kind]}", column], abs=0.0051)


def test_table_5_without_pq_rounds_table_9() -> None:
    whole = read("table_9")
    for (row, column), value in read("table_5").items():
        if "PQ" not in row:
            assert value == pytest.approx(whole[f"SigLIP, {row}", column], abs=0.0051)


@pytest.mark.parametrize(
    ("figure", "data", "columns"),
    [
        ("figure_s2", "ILIAS", ("mAP", "LocScore")),
        ("figure_s8", "ILIAS", DELTAS),
        ("figure_s9", "INSTRE", DELTAS),
    ],
)
def test_figures_draw_tables_8_and_9(figure: str, data: str, columns: tuple[str, ...]) -> None:
    drawn, whole = read(figure), read("table_8", "table_9")
    assert len({row for row, _ in drawn}) == 32 and {column for _, column in drawn} == set(columns)
    assert drawn == {
        (row, column.removeprefix(f"{data} ")): value
        for (row, column), value in whole.items()
        if column in {f"{data} {part}" for part in columns}
    }


def test_figure_s3_draws_table_4() -> None:
    table = read("table_4")
    assert read("figure_s3") == {(row, "mAP"): table[row, column] for row, column in table if column == "ILIAS mAP"}


def test_the_units_of_table_7() -> None:
    """Rows of 1,024 float32 of 26,543 and 4,885 images: MiB before; after, MB of lists with 72 bytes per row."""
    figures, doubts = read("table_7"), list_doubts(load_table("patchify/table_7"))
    lists = 4096 * 1024 * 4 + 256 * 1024 * 4 + 4096 * 8  # centroids, words, lengths of lists
    for data, images in (("INSTRE", 26_543), ("ILIAS", 4_885)):
        for row, regions in (("L0 (1)", 1), ("L1 (5)", 5), ("L2 (14)", 14), ("L3 (30)", 30)):
            before, after = regions * images * 4096 / 2**20, (lists + regions * images * 72) / 1e6
            printed = figures[row, f"{data} MB"]
            if printed in (1420, 3040):  # GiB with two decimals
                assert printed / 1000 == pytest.approx(before / 1024, abs=0.0051)
            else:
                assert printed == pytest.approx(before, abs=0.0051)
            assert (row, f"{data} MB") in doubts
            coded = figures[row, f"{data} PQ MB"]
            if coded == 71.71:
                assert coded == pytest.approx(after * 1e6 / 2**20, abs=0.0051)
                assert (row, f"{data} PQ MB") in doubts
            else:
                assert coded == pytest.approx(after, abs=0.0051)
            assert figures[row, f"{data} CR"] == pytest.approx(printed / coded, abs=0.0051)
