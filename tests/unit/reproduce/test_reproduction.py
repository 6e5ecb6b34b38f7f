"""A measured table as text, JSON and a page."""

import json
from pathlib import Path

import pytest

from resight.errors import InputError
from resight.evaluate.table import to_latex, to_markdown
from resight.reproduce.paper_page import list_files, render, write_files
from resight.reproduce.paper_table import Column, PaperRow, PaperTable, Published
from resight.reproduce.reproduction import Reproduction
from resight.reproduce.run import Measured, NotRun
from resight.reproduce.selection import choose_tables, find_data, read_data

TABLE = PaperTable(
    "paper/table_1",
    "How many <tokens>",
    "A paper, table 1",
    "retrieval",
    unit="percent",
    notes=("as we read it",),
    baseline="K = 4",
    columns=(Column("net", text=True), Column("mAP", "ap", unit="percent"), Column("R@1", "recall@1")),
    rows=(
        PaperRow("K = 4", "small", published=(Published(text="ViT"), Published(42.0, text="42.0"), Published())),
        PaperRow("K = 8", "small", published=(Published(text="ViT"), Published(50.0, "or 51", "50.0"), Published())),
        PaperRow("K = 16", "large", published=(Published(text="ViT"), Published(60.0, text="60.0"), Published())),
    ),
)
FOUND = Reproduction(
    TABLE,
    TABLE.rows,
    {
        ("K = 4", "mAP"): Measured(0.43, 0.41, 0.45, "seeds=fps"),
        ("K = 4", "R@1"): Measured(0.5, 0.4, 0.6),
        ("K = 8", "mAP"): Measured(0.44, 0.42, 0.46),
        ("K = 8", "R@1"): Measured(0.5, 0.4, 0.6),
        ("K = 16", "mAP"): NotRun("no weights; fetch them"),
        ("K = 16", "R@1"): NotRun("no weights; fetch them"),
    },
)


def test_a_terminal_shows_ours_with_the_papers_in_brackets() -> None:
    table = FOUND.tabulate()
    assert table.title == "paper/table_1: How many <tokens>"
    assert table.columns == ("row", "verdict", "net", "mAP", "R@1")
    assert table.rows == (
        ("small", "", "", "", ""),
        ("K = 4", "inside the interval", "ViT", "43.0 ±2.0 (42.0)", "0.500 ±0.100"),
        ("K = 8", "nothing to compare", "ViT", "44.0 ±2.0 (50.0?)", "0.500 ±0.100"),
        ("large", "", "", "", ""),
        ("K = 16", "not run", "ViT", "– (60.0)", "–"),
    )
    assert table.answer == "1 inside the interval; 1 nothing to compare; 1 not run"
    assert table.absent == {"K = 16": "no weights; fetch them"}
    assert table.notes[:2] == ("Source: A paper, table 1", "as we read it")
    assert "? or 51: K = 8, mAP" in table.notes
    assert "seeds=fps: K = 4, mAP" in table.notes
    assert any("Verdict of a row: inside the interval = " in note for note in table.notes)


def test_files_show_ours_the_papers_and_the_difference_with_its_interval() -> None:
    table = FOUND.tabulate(wide=True)
    assert table.columns == ("row", "verdict", "net", "ours", "paper", "difference", "ours")
    assert table.groups == (("", 1), ("", 1), ("mAP", 3), ("R@1", 1))
    assert table.rows[1][3:6] == ("43.0 ±2.0", "42.0", "+1.0 [-1.0, +3.0]")
    assert table.rows[4][3:6] == ("–", "60.0", "–")
    assert "| K = 4 | inside the interval | ViT | 43.0 ±2.0 | 42.0 | +1.0 \\[-1.0, +3.0\\] |" in to_markdown(table)
    assert r"43.0 $\pm$2.0 & 42.0" in to_latex(table)


def test_json_holds_the_units_of_the_paper() -> None:
    values = FOUND.to_dict()
    first, second, third = values["rows"]
    assert first["cells"]["mAP"] == {
        "paper": 42.0,
        "ours": 43.0,
        "low": 41.0,
        "high": 45.0,
        "difference": 1.0,
        "note": "seeds=fps",
    }
    assert first["cells"]["net"] == {"paper": "ViT"}
    assert second["cells"]["mAP"]["doubt"] == "or 51"
    assert third["cells"]["mAP"] == {"paper": 60.0, "not_run": "no weights; fetch them"}
    assert (third["verdict"], third["detail"]) == ("not run", "no weights; fetch them")
    json.dumps(values, allow_nan=False)


def test_a_statement_shows_what_the_paper_prints() -> None:
    statement = PaperTable(
        "paper/figure_1",
        "A drawing",
        "A paper, figure 1",
        "statement",
        notes=("a drawing",),
        columns=(Column("size"),),
        rows=(PaperRow("data", published=(Published(3.0, text="3"),)),),
    )
    found = Reproduction(statement, statement.rows, {("data", "size"): NotRun("nothing to measure")})
    table = found.tabulate(wide=True)
    assert (table.columns, table.rows, table.answer) == (("row", "size"), (("data", "3"),), "")
    assert table.notes == ("Source: A paper, figure 1", "a drawing")


def test_a_page_stands_alone_and_escapes_words() -> None:
    page = render([FOUND], "paper")
    assert "How many &lt;tokens&gt;" in page
    assert "<script" not in page and "http" not in page.replace("http-equiv", "")
    assert '<th scope="row">K = 4</th><td class="verdict right">inside the interval</td>' in page
    assert "no weights; fetch them" in page


def test_one_table_and_a_whole_paper_have_files_of_their_own(tmp_path: Path) -> None:
    write_files([FOUND], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"paper_table_1.{suffix}" for suffix in ("html", "json", "md", "tex")
    )
    write_files([FOUND, FOUND], tmp_path)
    assert {path.name for path in list_files([FOUND, FOUND], tmp_path)} <= {path.name for path in tmp_path.iterdir()}
    assert len(json.loads((tmp_path / "paper.json").read_text())["tables"]) == 2


def test_rows_are_chosen_by_patterns() -> None:
    def names(*rows: str, skip: tuple[str, ...] = ()) -> list[str]:
        (table,) = choose_tables(["craterbench/table_9"], rows, skip)
        return [row.name for row in table.rows]

    every = names()
    assert names("k = 1*") == [name for name in every if name.startswith("K = 1")]
    assert names(skip=("*4*",)) == [name for name in every if "4" not in name]
    with pytest.raises(InputError, match="no row was chosen") as caught:
        names("ResNet*")
    assert "--rows 'ResNet*'" in caught.value.actual


def test_a_table_that_is_named_twice_runs_once() -> None:
    chosen = choose_tables(["craterbench/table_9", "craterbench"])
    assert [table.name for table in chosen].count("craterbench/table_9") == 1


def test_folders_of_data_sets(tmp_path: Path) -> None:
    assert read_data(["photos", "ilias=own/ilias"]) == {"": Path("photos"), "ilias": Path("own/ilias")}
    odd = tmp_path / "a=b"
    odd.mkdir()
    assert read_data([str(odd)]) == {"": odd}
    with pytest.raises(InputError, match="twice"):
        read_data(["a", "b"])
    (table,) = choose_tables(["craterbench/table_9"])
    assert find_data(tmp_path, [table]).alone == "craterbench"
    assert find_data({"craterbench": tmp_path}, [table]).find("craterbench") == tmp_path
    assert find_data(None, [table]).root is None
