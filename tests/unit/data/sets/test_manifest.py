import json
from pathlib import Path

import pytest

from resight.data import sets
from resight.data.sets.manifest import refs
from resight.errors import ManifestError
from resight.types import Dataset


def load_csv(folder: Path, text: str, **settings) -> Dataset:
    (folder / "m.csv").write_text(text, encoding="utf-8")
    return sets.build("manifest", **settings).load(folder / "m.csv")


def load_jsonl(folder: Path, *rows: dict) -> Dataset:
    (folder / "m.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return sets.build("manifest").load(folder / "m.jsonl")


def test_a_column_of_paths_is_enough(tmp_path):
    dataset = load_csv(tmp_path, "path\na.jpg\nsub/b.jpg\n")
    assert [(ref.id, ref.path) for ref in dataset.database] == [
        ("a.jpg", tmp_path / "a.jpg"),
        ("sub/b.jpg", tmp_path / "sub" / "b.jpg"),
    ]
    assert (dataset.queries, dataset.name) == ((), "m")


def test_an_absolute_path_stays(tmp_path):
    (ref,) = load_jsonl(tmp_path, {"id": "a", "path": str(tmp_path / "elsewhere" / "a.jpg")}).database
    assert ref.path == tmp_path / "elsewhere" / "a.jpg"


def test_a_byte_order_mark_and_windows_lines_are_accepted(tmp_path):
    dataset = load_csv(tmp_path, "\ufeffpath,label\r\na.jpg,ä\r\n\r\n")
    assert dataset.database[0].attributes == {"label": "ä"}


def test_other_columns_become_attributes_and_numbers_become_numbers(tmp_path):
    text = "path,year,height,code,word,void,big\na.jpg,1999,1.5e2,007,nan,,123456789012345678901\n"
    attributes = load_csv(tmp_path, text).database[0].attributes
    assert attributes == {"year": 1999, "height": 150.0, "code": "007", "word": "nan", "big": "123456789012345678901"}
    assert type(attributes["year"]) is int


def test_json_values_keep_their_types(tmp_path):
    (ref,) = load_jsonl(tmp_path, {"path": "a", "label": 7, "n": "12", "f": 2.5, "b": True, "none": None}).database
    assert ref.attributes == {"label": "7", "n": "12", "f": 2.5, "b": True}


@pytest.mark.parametrize("cell", ['"1,2,30.5,40"', "1 2 30.5 40", '" 1, 2, 30.5, 40 "'])
def test_boxes_are_four_numbers(tmp_path, cell):
    assert load_csv(tmp_path, f"path,box\na.jpg,{cell}\n").database[0].box == (1, 2, 30.5, 40)


def test_roles_share_rows_out(tmp_path):
    dataset = load_csv(tmp_path, "path,role\na,database\nb,query\nc,both\nd,\n")
    assert [ref.id for ref in dataset.database] == ["a", "c", "d"]
    assert [ref.id for ref in dataset.queries] == ["b", "c"]
    assert dataset.judgements.keys() == {"b", "c"}


def test_positives_ignored_and_boxes_of_a_csv(tmp_path):
    text = "path,role,positives,ignored,positive_boxes\na,,,,\nb,,,,\nc,,,,\nq,query,a b,c,a:0 0 5 6;b:1 2 3 4\n"
    judgement = load_csv(tmp_path, text).judgements["q"]
    assert judgement.grades == {"a": 1, "b": 1}
    assert judgement.ignored == {"c"}
    assert judgement.boxes == {"a": (0, 0, 5, 6), "b": (1, 2, 3, 4)}


def test_ids_with_spaces_are_set_apart_by_semicolons(tmp_path):
    text = "path,role,positives\nmy photo.jpg,,\nb,,\nq,query,my photo.jpg;b\nr,query,my photo.jpg;\n"
    judgements = load_csv(tmp_path, text).judgements
    assert judgements["q"].grades == {"my photo.jpg": 1, "b": 1}
    assert judgements["r"].grades == {"my photo.jpg": 1}


def test_grades_of_json(tmp_path):
    rows = [{"path": "a"}, {"path": "b"}]
    query = {"path": "q", "role": "query", "positives": {"a": 2, "b": 1}, "positive_boxes": {"a": [0, 0, 1, 1]}}
    judgement = load_jsonl(tmp_path, *rows, query).judgements["q"]
    assert judgement.grades == {"a": 2, "b": 1}
    assert judgement.boxes == {"a": (0, 0, 1, 1)}


def test_without_positives_the_same_label_is_the_truth(tmp_path):
    text = "path,role,label\na,,x\nb,,x\nc,,y\nq,query,x\nr,query,z\n"
    judgements = load_csv(tmp_path, text).judgements
    assert dict(judgements["q"].grades) == {"a": 1, "b": 1}
    assert dict(judgements["r"].grades) == {}


def test_a_query_in_the_database_is_ignored_for_itself(tmp_path):
    judgement = load_csv(tmp_path, "path,role,label\na,both,x\nb,both,x\nc,both,y\n").judgements["a"]
    assert dict(judgement.grades) == {"b": 1}
    assert len(judgement.grades) == 1
    assert "a" not in judgement.grades
    assert judgement.ignored == {"a"}


def test_positives_win_over_labels_and_an_empty_list_means_none(tmp_path):
    rows = [{"path": "a", "label": "x"}, {"path": "b", "label": "y"}]
    judgements = load_jsonl(
        tmp_path,
        *rows,
        {"path": "q", "role": "query", "label": "x", "positives": ["b"]},
        {"path": "r", "role": "query", "label": "x", "positives": []},
    ).judgements
    assert judgements["q"].grades == {"b": 1}
    assert judgements["r"].grades == {}


def test_without_labels_what_lies_near_is_the_truth(tmp_path):
    # a ten-thousandth of a degree of latitude is 11.1 metres
    text = "path,role,lat,lon\na,,52.0000,13\nb,,52.0002,13\nc,,52.0003,13\nd,,,\nq,query,52.0000,13\n"
    assert load_csv(tmp_path, text).judgements["q"].grades == {"a": 1, "b": 1}
    assert load_csv(tmp_path, text, within_metres=34).judgements["q"].grades == {"a": 1, "b": 1, "c": 1}
    assert load_csv(tmp_path, text, within_metres=0).judgements["q"].grades == {"a": 1}


def test_near_holds_across_the_date_line(tmp_path):
    text = "path,role,lat,lon\na,,0,179.9999\nb,,0,179.9\nq,query,0,-179.9999\n"
    assert load_csv(tmp_path, text).judgements["q"].grades == {"a": 1}


def test_a_query_of_which_nothing_is_said_has_no_positives(tmp_path):
    assert load_csv(tmp_path, "path,role\na,\nq,query\n").judgements["q"].grades == {}


def test_a_json_list_is_a_manifest_too(tmp_path):
    (tmp_path / "m.json").write_text('[{"path": "a"}, {"path": "b", "role": "query"}]')
    dataset = sets.build("manifest").load(tmp_path / "m.json")
    assert (len(dataset.database), len(dataset.queries)) == (1, 1)


def test_a_folder_stands_for_its_manifest(tmp_path):
    (tmp_path / "manifest.jsonl").write_text('{"path": "a"}\n\n')
    assert len(sets.build("manifest").load(tmp_path).database) == 1


def test_refs_streams_the_database_row_by_row(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("path,role\na,\nq,query\nb,both\nc,nonsense\n")
    stream = refs(path)
    assert [next(stream).id, next(stream).id] == ["a", "b"]
    with pytest.raises(ManifestError, match="line 5"):
        next(stream)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("file,label\na,b\n", 1, "columns: file, label"),
        ("", 1, "columns: none"),
        ("path,path\na,b\n", 1, "each column once"),
        ("path,role\na,\nb,queries\n", 3, "database, query, both"),
        ("path,box\na,1 2 3\n", 2, "four numbers"),
        ("path,box\na,1 2 3 x\n", 2, "four numbers"),
        ("path,box\na,5 2 3 9\n", 2, "x0 < x1"),
        ("path,box\na,0 0 inf 9\n", 2, "four numbers"),
        ("path,lat,lon\na,91,0\n", 2, "-90 to 90"),
        ("path,lat,lon\na,0,-180.5\n", 2, "-180 to 180"),
        ("path,lat,lon\na,nan,0\n", 2, "-90 to 90"),
        ("path,lat,lon\na,12,\n", 2, "both lat and lon"),
        ("path\na\nb\na\n", 4, "lines 2 and 4"),
        ("path,role,positives\na,,\nq,query,a nope\n", 3, "'nope'"),
        ("path,role,positives\na,query,\nq,query,a\n", 3, "not in the database"),
        ("path,role,ignored\na,,\nq,query,nope\n", 3, "ignored names 'nope'"),
        ("path,role,positive_boxes\na,,\nq,query,0 0 1 1\n", 3, "id:x0 y0 x1 y1"),
        ("path,label\na,b,c\n", 2, "2 cells"),
        ("path,label\n,b\n", 2, "no path"),
        ('path,label\na,"b\n', 2, "not valid CSV"),
    ],
)
def test_a_wrong_csv_is_refused_with_file_line_and_what_was_expected(tmp_path, text, line, says):
    with pytest.raises(ManifestError) as caught:
        load_csv(tmp_path, text)
    assert f"m.csv, line {line}: " in caught.value.problem
    assert says in str(caught.value)
    assert caught.value.expected
    assert caught.value.actual
    assert caught.value.fix


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ('{"path": "a"}\n{"path": \n', 2, "not valid JSON"),
        ('{"path": "a", "x": NaN}\n', 1, "not valid JSON"),
        ("[1]\n", 1, "not an object"),
        ('{"file": "a"}\n', 1, "keys: file"),
        ('{"path": 5}\n', 1, "no path"),
        ('{"path": "a", "id": [1]}\n', 1, "not an id"),
        ('{"path": "a", "box": [1, 2, 3, true]}\n', 1, "not a box"),
        ('{"path": "a", "box": {"x": 1}}\n', 1, "not a box"),
        ('{"path": "a", "tags": ["x"]}\n', 1, "'tags' holds a list"),
        ('{"path": "a", "positives": {"a": -1}}\n', 1, "grade"),
        ('{"path": "a", "positives": 3}\n', 1, "list of ids"),
        ('{"path": "a", "positive_boxes": [1]}\n', 1, "{id: box}"),
    ],
)
def test_wrong_json_lines_are_refused_with_file_line_and_what_was_expected(tmp_path, text, line, says):
    (tmp_path / "m.jsonl").write_text(text)
    with pytest.raises(ManifestError) as caught:
        sets.build("manifest").load(tmp_path / "m.jsonl")
    assert f"m.jsonl, line {line}: " in caught.value.problem
    assert says in str(caught.value)


def test_text_that_is_not_utf8_is_refused(tmp_path):
    (tmp_path / "m.csv").write_bytes(b"path\ncaf\xe9.jpg\n")
    with pytest.raises(ManifestError, match="not UTF-8"):
        sets.build("manifest").load(tmp_path / "m.csv")


@pytest.mark.parametrize("name", ["nowhere.csv", "m.xlsx"])
def test_what_is_no_manifest_is_refused(tmp_path, name):
    (tmp_path / "m.xlsx").write_bytes(b"x")
    with pytest.raises(ManifestError, match="is not a manifest"):
        sets.build("manifest").load(tmp_path / name)


def test_a_folder_without_a_manifest_is_refused(tmp_path):
    with pytest.raises(ManifestError, match="no manifest in"):
        sets.build("manifest").load(tmp_path)


def write(folder: Path, *rows: str) -> Path:
    path = folder / "manifest.csv"
    path.write_text("\n".join(["path,role,lat,lon,heading", *rows]))
    return path


def test_a_latitude_that_can_only_be_a_longitude_is_said(tmp_path):
    path = write(tmp_path, "a.jpg,database,151.2,-33.8,")
    with pytest.raises(ManifestError, match="lat and lon look swapped: lon is -33"):
        sets.build("manifest").load(path)


@pytest.mark.parametrize("row", ["a.jpg,database,200,-33.8,", "a.jpg,database,95,120,", "a.jpg,database,x,1,"])
def test_other_mistakes_are_not_called_swapped(tmp_path, row):
    with pytest.raises(ManifestError) as caught:
        sets.build("manifest").load(write(tmp_path, row))
    assert "swapped" not in str(caught.value)


def test_queries_that_fit_only_the_other_way_round_are_refused(tmp_path):
    path = write(tmp_path, "a.jpg,database,52.5,13.3,", "b.jpg,query,13.3,52.5,", "c.jpg,query,13.3001,52.5,")
    with pytest.raises(ManifestError, match="look swapped") as caught:
        sets.build("manifest").load(path)
    assert "2 of 2 are within 1 km" in str(caught.value)


@pytest.mark.parametrize(
    "queries",
    [
        ("b.jpg,query,52.5,13.3,",),  # in place
        ("b.jpg,query,13.3,52.5,", "c.jpg,query,52.6,13.3,"),  # one of them is in place
        ("b.jpg,query,40.0,-3.7,",),  # elsewhere, whichever way round
        ("b.jpg,query,,,",),
    ],
)
def test_queries_are_left_alone_where_nothing_is_certain(tmp_path, queries):
    dataset = sets.build("manifest").load(write(tmp_path, "a.jpg,database,52.5,13.3,", *queries))
    assert len(dataset.queries) == len(queries)


def test_headings_of_a_manifest_count_where_they_are_asked_for(tmp_path):
    path = write(
        tmp_path,
        "a.jpg,database,52.5,13.3,350",
        "b.jpg,database,52.5,13.3,100",
        "c.jpg,database,52.5,13.3,",
        "q.jpg,query,52.5,13.3,20",
    )
    assert set(sets.build("manifest").load(path).judgements["q.jpg"].grades) == {"a.jpg", "b.jpg", "c.jpg"}
    assert set(sets.build("manifest", heading=40.0).load(path).judgements["q.jpg"].grades) == {"a.jpg"}
