"""Tables of model complexity: facts of a row, parts of a network, and rows that cannot be counted."""

import pytest
from support.same_process import SameProcess

pytest.importorskip("resight.encode.backbones.timm")

from resight.errors import InputError
from resight.reproduce.kinds import complexity
from resight.reproduce.paper_table import load_table
from resight.reproduce.run import Measured, NotRun
from resight.types import Choice

TABLE = """
title = "Sizes"
source = "a test"
kind = "complexity"
unit = ""

[[recipe.branches]]
encoder = { name = "cider", backbone = "resnet18", dimensions = 32, pretrained = true }
descriptor = "pooled"

[[columns]]
name = "M"
metric = "params"

[[columns]]
name = "G"
metric = "gflops"

[[columns]]
name = "D"
metric = "dim"

[[rows]]
name = "whole"
published = [11, 2, 32]

[[rows]]
name = "parts"
parts = ["localisation", "pooling"]

[[rows]]
name = "no network"
set = ["branches.0.encoder=sift"]

[[rows]]
name = "unknown part"
parts = ["tail"]

[[rows]]
name = "unknown setting"
set = ["branches.0.encoder.sise=3"]

[[rows]]
name = "private"
skip = "not a public network"
"""


def read_table(tmp_path, text=TABLE):
    path = tmp_path / "sizes.toml"
    path.write_text(text, encoding="utf-8")
    return load_table(path)


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sizes")
    table, run = read_table(folder), SameProcess(folder / "out")
    found = {(row, column): cell for row, column, cell in complexity.measure(table, table.rows, run)}
    assert len(run.asked) == 5  # once per row, whatever the number of columns
    return found


def test_cells_are_facts_of_the_network_at_random_weights(cells):
    added = 512 * 64 * 2 + 64 + 512  # enhancement
    added += 2 * (9 * 512 + 2 * 512) + 2 + (512 * 32 + 32) + 2 * (32 * 512 + 512)  # context
    added += 512 + 1 + 2 + 1 + 512 * 32 + 32  # localisation and pooling
    assert cells["whole", "M"] == Measured((11_176_512 + added) / 1e6)
    assert cells["whole", "D"] == Measured(32)
    assert cells["whole", "G"].value == pytest.approx(1.814, abs=0.001)


def test_parts_are_added_up(cells):
    assert cells["parts", "M"].value == pytest.approx((512 + 1 + 2 + 1 + 512 * 32 + 32) / 1e6)
    assert cells["parts", "G"].value == pytest.approx((512 * 49 + 512 * 32) / 1e9)
    assert isinstance(cells["parts", "D"], NotRun)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("no network", "sift cannot be counted"),
        ("unknown part", "no part 'tail'"),
        ("unknown setting", "no setting 'sise'"),
        ("private", "not a public network"),
    ],
)
def test_a_row_that_cannot_be_counted_says_why(cells, row, reason):
    assert reason in cells[row, "M"].reason and reason in cells[row, "G"].reason


def test_several_encoders_count_together_and_weights_are_never_fetched():
    small = {"name": "timm", "model": "resnet18", "weights": "no-such-file.pth"}
    parts = [{"encoder": small, "descriptor": "pooled"}] * 2
    assert complexity.count_parameters(Choice("fused", {"parts": parts})) == pytest.approx(2 * 11.176512)
    assert complexity.count_gflops(Choice("resnet18")) == pytest.approx(1.8136, abs=1e-4)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('metric = "gflops"', 'metric = "watts"', "no such fact"),
        ('parts = ["tail"]', "parts = 3", "parts does not fit"),
        ('parts = ["tail"]', 'piece = "tail"', "no setting 'piece'"),
    ],
)
def test_a_table_that_means_nothing_is_refused(tmp_path, old, new, problem):
    with pytest.raises(InputError, match=problem):
        read_table(tmp_path, TABLE.replace(old, new))


@pytest.mark.parametrize("name", ["cider/table_a10", "cider/table_a11", "msls_london/table_1", "msls_london/table_3"])
def test_the_papers_tables_name_networks_that_can_be_counted(name):
    table = load_table(name)
    assert complexity.requirements(table).weights == ()
    assert all(column.metric in complexity.FACTS for column in table.measured)
    assert not any(row.skip for row in table.rows)
