"""No CSV file that resight writes holds a formula, and its readers give back every text."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resight.audit.dedup.pairs import Pair, read_pairs, write_pairs
from resight.audit.match.find_matches import Matched
from resight.audit.match.match_table import write_matches
from resight.data.manifest_rows import read_rows
from resight.data.write_manifest import write_manifest
from resight.files.csv_cells import make_writer, protect, restore
from resight.types import Dataset, ImageRef

FORMULAS = [
    '=HYPERLINK("http://thief.example")',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\tx",
    "\r=1",
    "'=1",
    "''-x",
]
STARTS = ("=", "+", "-", "@", "\t", "\r")


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_become_text(text: str) -> None:
    assert str(protect(text)).startswith("'")
    assert restore(protect(text)) == text


@pytest.mark.parametrize("cell", ["-1.5", "+3", "1e-5", "-.5", "a=b", "'quoted'", "", "photo-1.jpg", -3, 2.5, None])
def test_numbers_and_plain_text_stay(cell: object) -> None:
    assert protect(cell) == cell


@given(st.text(max_size=20))
def test_every_text_comes_back(text: str) -> None:
    assert restore(protect(text)) == text


@given(st.lists(st.text(alphabet="='+-@\t\r\n,\"a1. ", max_size=8), min_size=1, max_size=4))
def test_no_written_cell_is_a_formula(cells: list[str]) -> None:
    file = io.StringIO()
    make_writer(file).writerow(cells)
    (row,) = csv.reader(io.StringIO(file.getvalue(), newline=""))
    assert [restore(cell) for cell in row] == cells
    for cell in row:
        assert not cell.startswith(STARTS) or cell.lstrip("+-").replace(".", "", 1).replace(".", "").isdigit()


def test_pairs_of_dedup_are_safe_and_come_back(tmp_path: Path) -> None:
    pair = Pair("=1+1", "@a", "copy", 1.0, 1, "=1+1")
    write_pairs([pair], tmp_path / "pairs.csv")
    assert "'=1+1,'@a" in (tmp_path / "pairs.csv").read_text()
    assert (read_pairs(tmp_path / "pairs.csv")[0].a, read_pairs(tmp_path / "pairs.csv")[0].b) == ("=1+1", "@a")


def test_matches_are_safe(tmp_path: Path) -> None:
    write_matches([Matched("=1")], tmp_path / "m.csv")
    assert "'=1," in (tmp_path / "m.csv").read_text()


def test_a_manifest_is_safe_and_comes_back(tmp_path: Path) -> None:
    (tmp_path / "-a.jpg").write_bytes(b"")
    ref = ImageRef("=id", tmp_path / "-a.jpg", (-1.0, 2.0, 3.0, 4.0), {"label": "@label", "lat": -3.5, "lon": 2.0})
    write_manifest(Dataset("x", (ref,), (), {}), tmp_path / "m.csv")
    assert not any(cell.startswith(("=", "@", "+")) for cell in (tmp_path / "m.csv").read_text().split(","))
    (row,) = read_rows(tmp_path / "m.csv")
    assert row.ref == ref
