"""Tables of papers as data: what a file says, and what is refused."""

from pathlib import Path

import pytest

from resight import recipe
from resight.errors import InputError, RecipeError
from resight.reproduce.paper_table import Best, list_papers, list_tables, load_paper, load_table

TABLE = """
title = "How many tokens"
source = "A paper, table 1"
kind = "retrieval"
data = ["manifest"]
hours = 2
notes = ["as we read it"]

[recipe]
data = "manifest"
branches = [{ encoder = "sift", descriptor = { name = "vlad", words = 64 } }]

[[columns]]
name = "net"
text = true

[[columns]]
name = "mAP"
metric = "ap"
unit = "percent"

[[columns]]
name = "R@1"
metric = "recall@1"
best = { by = "ap", over = [["index=exact"], ["index=hnsw"]] }

[[rows]]
name = "K = 4"
group = "small"
set = ["branches.0.descriptor.words=4"]
published = ["SIFT", 42.0, 0.420]

[[rows]]
name = "K = 8"
published = ["SIFT", { value = 43.10, doubt = "the text says 44" }, "—"]
skip = "not public"
"""


def write(folder: Path, text: str = TABLE) -> Path:
    path = folder / "paper" / "table_1.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_becomes_a_table(tmp_path: Path) -> None:
    table = load_table(write(tmp_path))
    assert (table.name, table.paper, table.kind, table.unit) == ("paper/table_1", "paper", "retrieval", "fraction")
    assert (table.data, table.hours, table.notes, table.baseline) == (("manifest",), 2.0, ("as we read it",), "K = 4")
    net, ap, recall = table.columns
    assert (net.text, ap.unit, recall.unit, recall.metric) == (True, "percent", "fraction", "recall@1")
    assert table.measured == (ap, recall)
    assert recall.best == Best("ap", (("index=exact",), ("index=hnsw",)))
    first, second = table.rows
    assert (first.group, first.set, second.skip) == ("small", ("branches.0.descriptor.words=4",), "not public")
    assert [cell.text for cell in first.published] == ["SIFT", "42.0", "0.420"]  # as printed, with every digit
    assert [cell.value for cell in first.published] == [None, 42.0, 0.42]
    doubtful, empty = second.published[1:]
    assert (doubtful.value, doubtful.text, doubtful.doubt) == (43.1, "43.10", "the text says 44")
    assert (empty.value, empty.text, empty.doubt) == (None, "—", "")


def test_a_row_without_published_cells_has_none(tmp_path: Path) -> None:
    text = TABLE.replace('published = ["SIFT", 42.0, 0.420]', "")
    assert [cell.text for cell in load_table(write(tmp_path, text)).rows[0].published] == ["—"] * 3


def test_an_unreadable_cell_has_a_doubt_and_no_value(tmp_path: Path) -> None:
    text = TABLE.replace('{ value = 43.10, doubt = "the text says 44" }', '{ doubt = "cut off" }')
    cell = load_table(write(tmp_path, text)).rows[1].published[1]
    assert (cell.value, cell.text, cell.doubt) == (None, "?", "cut off")


@pytest.mark.parametrize(
    ("old", "new", "problem", "fix"),
    [
        ("42.0, 0.420]", "42.0]", "the row 'K = 4' has the wrong number of published cells", "add or remove"),
        ("42.0, 0.420]", '42.0, "n/a"]', "the row 'K = 4', column 'R@1': not a cell", "text = true"),
        ("42.0, 0.420]", "42.0, { value = 1, doubts = '' }]", "has no setting 'doubts'", "did you mean 'doubt'?"),
        ('kind = "retrieval"', 'kind = "retreival"', "there is no kind 'retreival'", "did you mean 'retrieval'?"),
        ('kind = "retrieval"', "", "the table has no kind", "add kind"),
        ('metric = "ap"', 'metric = "app"', "no metrics called 'app'", "did you mean 'ap'"),
        ('metric = "ap"', "", "the column 'mAP' has no metric", "correct the table's file"),
        ('by = "ap"', 'by = "best"', "no metrics called 'best'", ""),
        ("over = [[", "over = [[], [1, ", "best does not fit", "a list of overrides"),
        ('skip = "not public"', 'skipp = "not public"', "the row 'K = 8' has no setting 'skipp'", "'skip'"),
        ('skip = "not public"', 'colour = "red"', "the row 'K = 8' has no setting 'colour'", "remove it"),
        ("descriptor.words=4", "descriptor", "row 'K = 4', column 'mAP': cannot use", "--set"),
        ("branches.0.descriptor.words=4", "branches.3.weight=1", "leads nowhere", "check the key"),
        ("hours = 2", "hours = -1", "hours does not fit", "correct it"),
        ('data = ["manifest"]', 'data = ["manifst"]', "there is no data set 'manifst'", "did you mean 'manifest'?"),
        ('data = ["manifest"]', 'data = ["museum"]', "its data set is not in `data`", "correct"),
        ("hours = 2", 'hours = 2\nbaseline = "K = 5"', "there is no row 'K = 5'", "did you mean"),
        ("hours = 2", 'hours = 2\nunit = "per mille"', "the table has an unknown unit", "choose one"),
        ('name = "K = 8"', 'name = "K = 4"', "two rows have the same name", "distinguishes"),
        ("[recipe]", '[recipe]\nmetrics = ["ap"]', "a table's recipe has no 'metrics'", "remove it"),
        ("encoder = ", "encoders = ", "has no setting 'encoders'", "did you mean 'encoder'?"),
        ("title =", "title", "is not valid TOML", "correct the line"),
    ],
)
def test_an_error_names_the_file_and_the_row(tmp_path: Path, old: str, new: str, problem: str, fix: str) -> None:
    path = write(tmp_path, TABLE.replace(old, new, 1))
    with pytest.raises(RecipeError) as caught:
        load_table(path)
    assert str(path) in caught.value.problem
    assert problem in caught.value.problem
    assert fix in caught.value.fix


def test_a_statement_says_why_nothing_is_measured(tmp_path: Path) -> None:
    text = 'title = "A drawing"\nsource = "A paper, figure 1"\nkind = "statement"\n'
    with pytest.raises(RecipeError, match="a statement without notes"):
        load_table(write(tmp_path, text))
    assert load_table(write(tmp_path, text + 'notes = ["a drawing"]')).rows == ()


def test_tables_are_found_by_name_and_by_paper() -> None:
    assert "craterbench/table_9" in list_tables()
    assert "craterbench" in list_papers()
    names = list_tables("craterbench")
    assert names.index("craterbench/table_9") < names.index("craterbench/table_10")
    assert [table.name for table in load_paper("craterbench")] == names
    with pytest.raises(InputError, match="no table 'craterbench/table_99'") as caught:
        load_table("craterbench/table_99")
    assert "did you mean 'craterbench/table_9'" in caught.value.fix
    with pytest.raises(InputError, match="no table 'craterbenhc'") as caught:
        load_paper("craterbenhc")
    assert "did you mean 'craterbench'" in caught.value.fix


def test_tables_are_no_recipes() -> None:
    assert not [name for name in recipe.shipped() if name.startswith("papers/")]
