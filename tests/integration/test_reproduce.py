"""`resight reproduce`: every retrieval table of every paper on small samples, and rows that fail beside others.

The tables keep their recipes; only the network is a tiny one with random weights, and the data sets are those of
tests/support/samples. Two rows of each table run, as the others differ in the network or a number. The experiments of
these run in this process: a process per group, as the command has it, would take minutes; one test does that.
"""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from support.running import run
from support.same_process import SameProcess
from support.scenes import write_views

from resight.reproduce import kinds
from resight.reproduce.experiments import list_experiments
from resight.reproduce.paper_table import PaperTable, list_papers, list_tables, load_paper
from resight.reproduce.reproduction import Reproduction
from resight.reproduce.run import DataFolders, Measured, NotRun

SAMPLES = ("craterbench", "ilias", "instre", "moonbench", "msls", "oxford_paris", "revisited")
TINY = 'branches.*.encoder={ name = "timm", model = "vit_tiny_patch16_224", untrained = true, size = 64 }'
LOCAL = ("sift", "orb", "surf")  # key points need no weights
SMALLER = {"moonbench": ("data.queries=2", "data.craters=0"), "msls": ("data.queries=2", "data.gallery=6")}
HEAVY = ("torch", "timm", "transformers", "torchvision")
ROWS = 2
TABLES = [table for paper in list_papers() for table in load_paper(paper) if table.kind == "retrieval"]
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
@pytest.mark.parametrize("table", TABLES, ids=[table.name for table in TABLES])
def test_a_table_runs_on_samples_and_has_the_shape_of_the_published_one(
    table: PaperTable, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [row for row in table.rows if not row.skip][:ROWS]
    overrides = [word for name in table.data for word in SMALLER.get(name, ())]
    overrides += ["branches.*.descriptor.words=2"] if is_local(table) else [TINY]
    if "moonbench" in table.data:
        overrides.append(f"data.crops={tmp_path}")
    measuring = SameProcess(
        tmp_path / "run", DataFolders(samples), overrides=tuple(overrides), cache_folder=samples / "cache"
    )
    cells = {(row, column): cell for row, column, cell in kinds.find("retrieval").measure(table, rows, measuring)}
    assert list(cells) == [(row.name, column.name) for row in rows for column in table.measured]
    failed = {cell.reason for cell in cells.values() if isinstance(cell, NotRun)}
    assert not failed
    found = Reproduction(table, tuple(rows), cells)
    shown = found.tabulate()
    assert shown.columns == ("row", "verdict", *(column.name for column in table.columns))
    assert [line[0] for line in shown.rows if line[1:] != ("",) * len(line[1:])] == [row.name for row in rows]
    for (_, name), cell in cells.items():
        (column,) = (column for column in table.columns if column.name == name)
        assert isinstance(cell, Measured)
        if cell.low is not None and cell.high is not None:
            assert 0 <= cell.low <= cell.high <= 1, column.metric
        else:
            assert cell.value > 0, column.metric  # a fact


def is_local(table: PaperTable) -> bool:
    recipes = [experiment.recipe for experiment in list_experiments(table, table.rows)]
    return all(branch.encoder.name in LOCAL for recipe in recipes if recipe for branch in recipe.branches)


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
