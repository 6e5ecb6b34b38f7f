"""`resight reproduce`: the tables of every paper on small samples, and rows that fail beside others.

Here are the tables that are measured by retrieval (also gains and shares of other rows), by counting a network and by
distances; audits, training and strata have tests of their own. The tables keep their recipes; only the network is a
tiny one with random weights, and the data sets are those of tests/support/samples. Of a retrieval table, two rows and
those with a recipe of their own run: the others differ in the network or a number. The experiments of these run in this
process: a process per group, as the command has it, would take minutes; one test does that.
"""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import cv2
import numpy as np
import pytest
from support.running import run
from support.same_process import SameProcess
from support.scenes import write_views

from resight.reproduce import kinds
from resight.reproduce.experiments import list_experiments
from resight.reproduce.paper_table import PaperRow, PaperTable, list_papers, list_tables, load_paper
from resight.reproduce.reproduction import Reproduction
from resight.reproduce.run import Cell, DataFolders, Measured, NotRun, Run

SAMPLES = ("craterbench", "ilias", "instre", "moonbench", "msls", "oxford_paris", "revisited")
TINY = 'branches.*.encoder={ name = "timm", model = "vit_tiny_patch16_224", untrained = true, size = 64 }'
LOCAL = ("sift", "orb", "surf")  # key points need no weights
SMALLER = {"moonbench": ("data.queries=2", "data.craters=0"), "msls": ("data.queries=2", "data.gallery=6")}
WHOLE = {  # retrieval tables that run with all their rows, which have a recipe each; and overrides for the samples
    "craterbench/table_12": ("branches.*.encoder.size=128", "branches.*.descriptor.k=64"),  # 256 tokens to learn from
    "moonbench/table_12": (),
}
CLOSE = 0.1  # of a published size
TOWERS = ("msls_london/table_2",)  # where the paper counts more than the image's network
Cells = Mapping[tuple[str, str], Cell]
NOT_COMPARED = "the paper compares this row with no other"
HEAVY = ("torch", "timm", "transformers", "torchvision")
ROWS = 2
TABLES = [table for paper in list_papers() for table in load_paper(paper)]
RANKED = [table for table in TABLES if table.kind in ("retrieval", "gains")]
COUNTED = [table for table in TABLES if table.kind == "complexity"]
FAILING = """
title = "Rows that fail"
source = "nowhere"
kind = "retrieval"
data = ["manifest"]

[recipe]
data = "manifest"
branches = [{ encoder = "sift", descriptor = { name = "vlad", words = 4, codebook = "learn" } }]

[[columns]]
name = "mAP"
metric = "ap"

[[columns]]
name = "R@1"
metric = "recall@1"
unit = "percent"

[[rows]]
name = "first"
published = [1.0, 100]

[[rows]]
name = "killed"
set = ["branches.0.descriptor.words=13"]
published = [0.5, 50]

[[rows]]
name = "bad setting"
set = ["branches.0.descriptor.words=many"]
published = [0.5, 50]

[[rows]]
name = "no weights"
set = ["branches.0.encoder=marsdino_vits16"]
published = [0.5, 50]

[[rows]]
name = "not public"
skip = "the network is not public"
published = [0.5, 50]

[[rows]]
name = "last"
set = ["branches.0.descriptor.words=8"]
published = [0.99, "—"]
"""
KILLER = """
import os, signal, sys
from pathlib import Path

if "resight.reproduce.worker" in sys.orig_argv and '"words": 13' in Path(sys.orig_argv[-2]).read_text():
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder per data set."""
    root = tmp_path_factory.mktemp("samples")
    for name in SAMPLES:
        (root / name).mkdir()
        importlib.import_module(f"support.samples.{name}").write(root / name, np.random.default_rng(0))
    for path in (root / "msls").rglob("*.jpg"):  # ORB finds nothing in smaller images
        cv2.imwrite(str(path), cv2.resize(cv2.imread(str(path)), None, fx=4, fy=4))
    return root


@pytest.mark.skipif(importlib.util.find_spec("timm") is None, reason="timm is not installed")
@pytest.mark.parametrize("table", RANKED, ids=[table.name for table in RANKED])
def test_a_table_runs_on_samples_and_has_the_shape_of_the_published_one(
    table: PaperTable, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = table.kind == "gains" or table.name in WHOLE
    rows = [row for row in table.rows if not row.skip][: None if whole else ROWS]
    overrides = [word for name in table.data for word in SMALLER.get(name, ())]
    overrides += ["branches.*.descriptor.words=2"] if is_local(table) else [TINY]
    overrides += WHOLE.get(table.name, ())
    if "moonbench" in table.data:
        overrides.append(f"data.crops={tmp_path}")
    measuring = SameProcess(
        samples / "runs" / table.name, DataFolders(samples), overrides=tuple(overrides), cache_folder=samples / "cache"
    )
    check_shape(table, rows, measure(table, rows, measuring))


def measure(table: PaperTable, rows: Sequence[PaperRow], measuring: Run) -> Cells:
    return {(row, column): cell for row, column, cell in kinds.find(table.kind).measure(table, rows, measuring)}


def check_shape(table: PaperTable, rows: Sequence[PaperRow], cells: Cells) -> None:
    """A figure for each cell of the published table, and a page with its rows and columns."""
    assert list(cells) == [(row.name, column.name) for row in rows for column in table.measured]
    shown = Reproduction(table, tuple(rows), cells).tabulate()
    assert shown.columns == ("row", "verdict", *(column.name for column in table.columns))
    assert [line[0] for line in shown.rows if line[1:] != ("",) * len(line[1:])] == [row.name for row in rows]
    columns = {column.name: column for column in table.columns}
    for (row, name), cell in cells.items():
        compared = columns[name].settings.get("compare")
        if compared and isinstance(cell, NotRun):
            assert cell.reason == NOT_COMPARED
            assert (
                next(each for each in rows if each.name == row).published[table.columns.index(columns[name])].value
                is None
            )
            continue
        assert isinstance(cell, Measured), f"{row}, {name}: {cell}"
        if cell.low is None or cell.high is None:
            assert cell.value > 0, columns[name].metric  # a fact
            continue
        assert cell.low <= cell.value <= cell.high
        if table.kind == "retrieval":
            assert cell.low >= 0 and cell.high <= 1, columns[name].metric


@pytest.mark.skipif(importlib.util.find_spec("timm") is None, reason="timm is not installed")
@pytest.mark.parametrize("table", COUNTED, ids=[table.name for table in COUNTED])
def test_a_table_of_sizes_counts_networks_without_weights(table: PaperTable, tmp_path: Path) -> None:
    rows = table.rows[:ROWS]
    cells = measure(table, rows, SameProcess(tmp_path / "run"))
    check_shape(table, rows, cells)
    for row in rows:
        for column, printed in zip(table.columns, row.published, strict=True):
            if (
                column.metric in ("params", "dim")
                and table.name not in TOWERS
                and printed.value is not None
                and not printed.doubt
            ):
                cell = cells[row.name, column.name]
                assert isinstance(cell, Measured) and cell.value == pytest.approx(printed.value, rel=CLOSE)


def test_the_table_of_distances_has_all_its_figures(samples: Path, tmp_path: Path) -> None:
    """Two cities of the sample, as one has fewer than 20 images."""
    (table,) = (table for table in TABLES if table.kind == "distances")
    overrides = ('data.cities=["london", "cph"]', "data.queries=2", "data.gallery=20")
    check_shape(
        table, table.rows, measure(table, table.rows, SameProcess(tmp_path, DataFolders(samples), overrides=overrides))
    )
    assert len((tmp_path / "images.txt").read_text().splitlines()) == 22


def test_a_statement_states_why_nothing_is_measured(tmp_path: Path) -> None:
    names = [table.name for table in TABLES if table.kind == "statement"]
    ran = run("reproduce", *names, "--out", tmp_path, "--json", tmp_path / "all.json")
    assert ran.code == 0, ran.err
    found = json.loads((tmp_path / "all.json").read_text())["tables"]
    assert [table["name"] for table in found] == names
    assert all(table["notes"] for table in found)


def is_local(table: PaperTable) -> bool:
    recipes = [experiment.recipe for experiment in list_experiments(table, table.rows)]
    names = [branch.encoder.name for recipe in recipes if recipe for branch in recipe.branches]
    return bool(names) and all(name in LOCAL for name in names)


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with views, a table and a Python that kills the worker of one row."""
    folder = tmp_path_factory.mktemp("failing")
    (folder / "paper").mkdir()
    write_views(folder, 5)
    (folder / "paper" / "table_1.toml").write_text(FAILING, encoding="utf-8")
    (folder / "killer").mkdir()
    (folder / "killer" / "sitecustomize.py").write_text(KILLER)
    return folder


def test_rows_that_fail_leave_the_others_alone_and_a_second_run_goes_on(
    failing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(failing / "killer"))
    words = ["reproduce", failing / "paper" / "table_1.toml", "--data", failing, "--out", tmp_path]
    first = run(*words, "--json", tmp_path / "all.json")
    assert (first.code, first.err) == (0, "")
    (table,) = json.loads((tmp_path / "all.json").read_text())["tables"]
    rows = {row["name"]: row for row in table["rows"]}
    assert {name: row["verdict"] for name, row in rows.items() if name not in ("first", "last")} == dict.fromkeys(
        ("killed", "bad setting", "no weights", "not public"), "not run"
    )
    assert rows["killed"]["detail"] == "out of memory (killed)"
    assert "words" in rows["bad setting"]["detail"]
    assert "MarsDINO needs a weights file" in rows["no weights"]["detail"]
    assert rows["not public"]["detail"] == "the network is not public"
    for name in ("first", "last"):
        for column, largest in (("mAP", 1), ("R@1", 100)):
            cell = rows[name]["cells"][column]
            assert 0 <= cell["low"] <= cell["ours"] <= cell["high"] <= largest
        assert rows[name]["verdict"] != "not run"
    assert "killed: out of memory (killed)" in first.out
    for suffix in ("html", "md", "tex", "json"):
        assert "mAP" in (tmp_path / f"paper_table_1.{suffix}").read_text()
    answers = {path.name for path in (tmp_path / "runs").rglob("*.json")}
    monkeypatch.delenv("PYTHONPATH")
    second = run(*words, "--rows", "killed", "--rows", "la*", "--skip", "no*")
    assert second.code == 0, second.err
    (table,) = json.loads((tmp_path / "paper_table_1.json").read_text())["tables"]
    again = {row["name"]: row for row in table["rows"]}
    assert list(again) == ["killed", "last"]
    assert again["killed"]["verdict"] != "not run"
    assert again["last"]["cells"] == rows["last"]["cells"]
    assert len({path.name for path in (tmp_path / "runs").rglob("*.json")} - answers) == 1  # that of the killed row


def test_a_dry_run_shows_the_experiments(failing: Path) -> None:
    ran = run("reproduce", failing / "paper" / "table_1.toml", "--dry-run", "--set", "index=hnsw")
    assert (ran.code, ran.err) == (0, "")
    assert "1 of 5: first, mAP and 1 more cells" in ran.out
    assert '"index": "hnsw"' in ran.out


def test_a_page_shows_the_settings_that_the_user_changed(failing: Path, tmp_path: Path) -> None:
    table = failing / "paper" / "table_1.toml"
    words = ["reproduce", table, "--data", failing / "absent", "--out", tmp_path, "--set", "index=hnsw"]
    assert run(*words, "--rows", "not public", "--json", tmp_path / "all.json").code == 0
    (found,) = json.loads((tmp_path / "all.json").read_text())["tables"]
    assert found["overrides"] == ["index=hnsw"]
    assert "Measured with --set index=hnsw" in (tmp_path / "paper_table_1.md").read_text()


def test_tables_are_listed_with_what_they_need() -> None:
    entries = run("reproduce", "list", "moonbench", "patchify/figure_3", "--json").answer
    names = [entry["name"] for entry in entries]
    assert "moonbench/table_9" in names and names[-1] == "patchify/figure_3"
    assert entries[-1]["ready"] is True
    assert {"name", "title", "kind", "data", "weights", "hours", "ready", "missing"} <= set(entries[0])
    shown = run("reproduce", "list", "craterbench/table_10", "--data", "craterbench=nowhere")
    assert shown.code == 0
    assert "missing: there is no data set craterbench at nowhere" in shown.out
    assert "needs a weights file" in shown.out


def test_bad_names_and_patterns_are_refused(tmp_path: Path) -> None:
    for words, told in (
        (("craterbench/table_99",), "did you mean 'craterbench/table_9'"),
        (("craterbench/table_9", "--rows", "ResNet*"), "no row was chosen"),
        (("craterbench/table_9", "--data", "a", "--data", "b"), "twice"),
    ):
        ran = run("reproduce", *words, "--out", tmp_path)
        assert (ran.code, told in ran.err) == (2, True), ran.err


def test_data_that_is_not_given_leaves_every_row_not_run(tmp_path: Path) -> None:
    ran = run("reproduce", "craterbench/table_9", "--rows", "K = 4", "--out", tmp_path)
    assert ran.code == 0, ran.err
    assert "the data set craterbench was not given" in ran.out


def test_the_list_loads_no_network_library() -> None:
    """They take 20 seconds."""
    code = (
        "import sys; sys.argv = ['resight', 'reproduce', 'list', '--json']\n"
        "from resight.apps.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "[]"
    assert len(json.loads(ran.stdout)) == len(list_tables())
