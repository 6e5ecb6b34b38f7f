"""Training tables from end to end at tiny size: random weights, samples of the data sets, one epoch."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from support.builders import draw_texture, make_picture
from support.same_process import SameProcess
from support.samples import gldv2, nc_clean, oxford_paris, revisited, sfm120k

from resight.encode import whitening as whitenings
from resight.encode.encoder import Encoder
from resight.encode.networks.design_header import save_network
from resight.errors import RecipeError
from resight.recipe import parse
from resight.reproduce.kinds import retrieval, training
from resight.reproduce.paper_table import PaperTable, list_tables, load_table
from resight.reproduce.run import Cell, DataFolders, Measured, NotRun, Run
from resight.train.train_config import BEFORE_TRAINING, NETWORK, REPORT
from resight.train.train_network import make_network
from resight.types import Choice

TINY = (
    "branches.0.encoder.backbone=test_resnet",
    "branches.0.encoder.pretrained=false",
    "branches.0.encoder.dimensions=8",
    "branches.0.encoder.size=32",
    "train.epochs=1",
    "train.batch=4",
    "train.size=32",
    "train.workers=1",
)
TABLES = [name for name in list_tables("cider") if load_table(name).kind == "training"]
SPLIT = {"keble_000006": "overlapping", "keble_000007": "other"}  # the queries of ROxford
Cells = dict[tuple[str, str], Cell]


class HereRun(SameProcess):
    def __init__(self, folder: Path, data: DataFolders, overrides: tuple[str, ...] = TINY) -> None:
        super().__init__(folder, data, overrides=overrides)


class RandomRun(HereRun):
    """Networks keep their random weights instead of being trained, and describe one image instead of data sets."""

    described: ClassVar[set[str]] = set()  # branches whose descriptions were checked, by their settings

    def isolate(self, function: str, arguments: dict[str, Any], remember: bool = True) -> dict[str, Any] | NotRun:
        if function == training.TRAIN:
            self.save(arguments["recipe"], Path(arguments["out"]))
            return {}
        if function == retrieval.MEASURE:
            return {"queries": list(SPLIT), "rows": [self.describe(recipe) for recipe in arguments["recipes"]]}
        return super().isolate(function, arguments, remember)

    def save(self, table: dict[str, Any], folder: Path) -> None:
        recipe = parse({"name": "random", **table})
        (branch,) = recipe.branches
        kept = {key: value for key, value in branch.encoder.settings.items() if key not in BEFORE_TRAINING}
        encoder = Choice(branch.encoder.name, kept)
        network = make_network(replace(recipe, branches=(replace(branch, encoder=encoder),)))
        folder.mkdir(parents=True)
        save_network(network, network.design, encoder.name, folder / NETWORK)
        (folder / REPORT).write_text("{}")

    def describe(self, table: dict[str, Any]) -> dict[str, Any]:
        """A figure per metric, if the recipe's network can describe an image at the scales of the recipe."""
        recipe = parse({"name": "random", **table})
        if (key := repr(recipe.branches)) not in self.described:
            picture = make_picture(draw_texture(np.random.default_rng(0), 48, 40))
            ((rows,),) = Encoder(recipe.branches).encode([picture])
            assert rows.vectors.shape == (1, 8) and np.isclose(np.linalg.norm(rows.vectors), 1)
            self.described.add(key)
        return {"figures": {metric: [0.5, 0.5, 0.5, [0.5, 0.5]] for metric in recipe.metrics}, "facts": {}}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataFolders:
    root = tmp_path_factory.mktemp("data")
    for module in (gldv2, nc_clean, sfm120k, oxford_paris, revisited):
        folder = root / module.__name__.rpartition(".")[2]
        folder.mkdir()
        module.write(folder, np.random.default_rng(0))
    return DataFolders(root)


def measure(table: PaperTable, run: Run) -> Cells:
    return {(row, column): cell for row, column, cell in training.measure(table, table.rows, run)}


def check_shape(table: PaperTable, cells: Cells) -> None:
    """Every cell that the paper prints has a figure of ours, a fraction."""
    assert list(cells) == [(row.name, column.name) for row in table.rows for column in table.measured]
    for (row, column), cell in cells.items():
        assert isinstance(cell, Measured), f"{row}, {column}: {cell}"
        assert 0 <= cell.value <= 1
        assert cell.low is not None and cell.high is not None and cell.low <= cell.value <= cell.high


def test_an_ablation_trains_a_network_per_row_and_measures_four_sets(data: DataFolders, tmp_path: Path):
    table = load_table("cider/table_8")
    run = HereRun(tmp_path / "table_8", data)
    two = replace(table, rows=table.rows[1::2])
    check_shape(two, measure(two, run))
    assert [run.asked.count(step) for step in ("train", "whiten")] == [2, 2]
    for folder in (tmp_path / "networks").iterdir():
        assert (folder / "network.safetensors").is_file() and not list(folder.glob("*.resight"))


def test_resolutions_share_a_network_and_have_a_whitening_per_setting_of_the_database(
    data: DataFolders, tmp_path: Path
):
    table = load_table("cider/table_a19")
    run = HereRun(tmp_path / "table_a19", data)
    cells = measure(table, run)
    check_shape(table, cells)
    assert [run.asked.count(step) for step in ("train", "whiten")] == [1, 2]
    (network,) = (tmp_path / "networks").iterdir()
    spaces = sorted(whitenings.load(file).facts.space for file in network.glob("*.npz"))
    assert ["multiscale(0.4 0.5 0.7 1 1.4)" in spaces[0], "multiscale(1)" in spaces[1]] == [True, True]
    assert all(whitenings.load(file).facts.shrinkage == 0 for file in network.glob("*.npz"))
    single, mixed = (cells[row.name, "ROxf Medium mAP"] for row in table.rows[:2])
    assert isinstance(single, Measured) and isinstance(mixed, Measured)
    assert single.queries.keys() == mixed.queries.keys() == {"keble_000006", "keble_000007"}


@pytest.fixture(scope="module")
def table_a22(data: DataFolders, tmp_path_factory: pytest.TempPathFactory) -> tuple[HereRun, Cells]:
    table = load_table("cider/table_a22")
    run = HereRun(tmp_path_factory.mktemp("a22") / "table_a22", data)
    return run, measure(table, run)


def test_whitening_shares_its_network_with_other_tables(data: DataFolders, table_a22: tuple[HereRun, Cells]):
    """Table 9's T = 2 is the network of table A22, though it says so explicitly."""
    table, other = load_table("cider/table_a22"), load_table("cider/table_9")
    run, cells = table_a22
    folder = run.folder.parent
    check_shape(table, cells)
    assert [run.asked.count(step) for step in ("train", "whiten")] == [1, 1]
    plans = [training.make_plan(table, row, TINY) for row in table.rows]
    assert [plan.whitening for plan in plans] == ["none", "lw"]
    same = training.make_plan(other, other.rows[1], TINY)
    assert training.identify_network(plans[0]) == training.identify_network(same)
    again = HereRun(folder / "table_9", data)
    measure(replace(other, rows=other.rows[1:2], columns=other.columns[:1]), again)
    assert [again.asked.count(step) for step in ("train", "whiten")] == [0, 0]
    (network,) = (folder / "networks").iterdir()
    weights = (network / "network.safetensors").read_bytes()
    (network / "report.json").unlink()  # as if it had been stopped before its end
    measure(replace(table, columns=table.columns[4:5]), again)
    assert again.asked.count("train") == 1
    assert (network / "network.safetensors").read_bytes() == weights
    assert training.identify_network(plans[0]) != training.identify_network(
        training.make_plan(other, other.rows[0], TINY)
    )


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the networks that several tables have in common."""
    return tmp_path_factory.mktemp("shared")


@pytest.mark.parametrize("name", TABLES)
def test_every_table_runs_at_random_weights(name: str, data: DataFolders, shared: Path, tmp_path: Path):
    """All its rows on ROxford, without whitening: a network for each, and a figure in each cell of the table."""
    table = load_table(name)
    columns = tuple(column for column in table.columns if column.settings.get("on") == "roxford5k")
    split = tmp_path / "overlap.csv"
    split.write_text("\n".join(["id,split", *(f"{query},{part}" for query, part in SPLIT.items())]))
    given = (*TINY, "whitening=none", f"overlap={split}")
    cells = measure(replace(table, columns=columns), RandomRun(shared / table.name, data, given))
    assert columns and len(cells) == len(columns) * len(table.rows)
    quoted = {row.name for row in table.rows if row.skip}
    for (row, column), cell in cells.items():
        assert isinstance(cell, NotRun if row in quoted else Measured), f"{row}, {column}: {cell}"


def test_a_network_from_elsewhere_is_not_trained_and_one_row_that_fails_leaves_the_others(
    data: DataFolders, table_a22: tuple[HereRun, Cells], tmp_path: Path
):
    table = load_table("cider/table_a22")
    first, known = table_a22
    (network,) = (first.folder.parent / "networks").glob("*/network.safetensors")
    given = (*TINY, f"branches.0.encoder.weights={network}")
    run = HereRun(tmp_path / "table", DataFolders(named={"revisited": data.find("revisited")}), given)
    cells = measure(table, run)
    assert "train" not in run.asked
    assert cells["no whitening", "ROxf Hard mAP"] == known["no whitening", "ROxf Hard mAP"]
    assert_not_run(cells["no whitening", "Ox5k mAP"], "oxford_paris")
    assert_not_run(cells["whitening", "ROxf Hard mAP"], "sfm120k")  # nothing to learn a whitening from


def test_a_comparison_network_is_trained_on_the_set_with_overlap(data: DataFolders, tmp_path: Path):
    """Table 4 trains on all classes on purpose; the sample has two, one of which overlaps."""
    table = load_table("cider/table_4")
    (row,) = [row for row in table.rows if row.name == "SOLAR, GLDv2-clean"]
    columns = tuple(column for column in table.columns if column.name == "ROxf Hard mP@10")
    small = replace(table, rows=(row,), columns=columns)
    cells = measure(small, HereRun(tmp_path / "table", data))
    check_shape(small, cells)
    (network,) = (tmp_path / "networks").iterdir()
    assert json.loads((network / "report.json").read_text())["classes"] == 2
    assert 'name = "landmark"' in (network / "recipe.toml").read_text()


def test_a_training_that_fails_says_why(data: DataFolders, tmp_path: Path):
    table = load_table("cider/table_a20")
    cells = measure(replace(table, rows=table.rows[:1]), HereRun(tmp_path / "table", data, TINY[3:]))
    assert_not_run(cells["Facebook (pycls)", "Ox5k mAP"], "pycls_r101.safetensors")


def test_means_differences_skipped_rows_and_distractors(data: DataFolders, tmp_path: Path):
    """Table 6's columns with R1M need their folder; the sample has it beside the two sets."""
    table = load_table("cider/table_6")
    chosen = [column for column in table.columns if column.name in ("ROxf Hard mP@10", "ROxf+R1M Hard mP@10")]
    mean = replace(chosen[0], name="MEAN", metric="mean", settings={"of": [column.name for column in chosen]})
    gap = replace(mean, name="DIFF", metric="difference", settings={"of": "MEAN"})
    rows = [row for row in table.rows if row.name in ("DIR, SfM-120k", "CiDeR, SfM-120k", "CiDeR-FT, SfM-120k")]
    rows[2] = replace(rows[2], settings={"against": "CiDeR, SfM-120k"})
    cells = measure(replace(table, columns=(*chosen, mean, gap), rows=tuple(rows)), HereRun(tmp_path / "table", data))
    assert_not_run(cells["DIR, SfM-120k", "ROxf Hard mP@10"], "quoted")
    values = {key: cell.value for key, cell in cells.items() if isinstance(cell, Measured)}
    for row in ("CiDeR, SfM-120k", "CiDeR-FT, SfM-120k"):
        parts = [values[row, column.name] for column in chosen]
        assert values[row, "MEAN"] == pytest.approx(sum(parts) / 2)
    expected = values["CiDeR-FT, SfM-120k", "MEAN"] - values["CiDeR, SfM-120k", "MEAN"]
    assert values["CiDeR-FT, SfM-120k", "DIFF"] == pytest.approx(expected)
    assert_not_run(cells["CiDeR, SfM-120k", "DIFF"], "no other")


def test_a_split_averages_its_own_queries(tmp_path: Path):
    file = tmp_path / "overlap.csv"
    file.write_text("id,split\nparis_louvre_000001,overlapping\nparis_louvre_000002,other\nparis_eiffel_000003,other\n")
    by_id = Measured(0, queries={"paris_louvre_000001": 0.5, "paris_louvre_000002": 0.25, "paris_eiffel_000003": 1.0})
    by_landmark = Measured(0, queries={"louvre_1": 0.5, "eiffel_1": 0.75, "pantheon_1": 0.1})
    take = training._take_split
    assert value_of(take(by_id, "overlapping", str(file))) == 0.5
    assert value_of(take(by_id, "other", str(file))) == 0.625
    assert value_of(take(by_landmark, "overlapping", str(file))) == 0.5
    assert value_of(take(by_landmark, "other", str(file))) == 0.75
    assert_not_run(take(Measured(0, queries={"x": 1.0}), "other", str(file)), "no query of the split")
    assert_not_run(take(by_id, "other", str(tmp_path / "missing.csv")), "missing.csv")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"settings": {"whitening": "lw", "colour": "red"}}, "colour"),
        ({"settings": {"whitening": "zca"}}, "unknown whitening"),
        ({"recipe": {}}, "branches"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(change: dict[str, Any], problem: str):
    with pytest.raises((RecipeError, KeyError), match=problem):
        training.check(replace(load_table("cider/table_9"), **change))


def value_of(cell: Cell) -> float:
    assert isinstance(cell, Measured)
    return cell.value


def assert_not_run(cell: Cell, *words: str) -> None:
    assert isinstance(cell, NotRun), cell
    missing: Sequence[str] = [word for word in words if word not in cell.reason]
    assert not missing, cell.reason
