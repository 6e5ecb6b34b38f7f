import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.samples import hugging_face as sample

from resight.data import sets
from resight.errors import ManifestError, StorageError
from resight.types import Dataset


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "things").mkdir()
    sample.write(tmp_path / "things", np.random.default_rng(0))
    return tmp_path / "things"


def load(root: Path, **settings: object) -> Dataset:
    return sets.build("hugging_face", **{"images": root.parent / "images", **settings}).load(root)


def save_to_disk(root: Path, split: str, table: object) -> None:
    """What `datasets.save_to_disk` writes: an arrow stream in two batches."""
    folder = root / split
    folder.mkdir(parents=True)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}))
    with pa.ipc.new_stream(folder / "data-00000-of-00001.arrow", table.schema) as writer:
        for batch in table.to_batches(max_chunksize=2):
            writer.write_batch(batch)


def test_positives_have_the_querys_label(root):
    dataset = load(root)
    assert [ref.id for ref in dataset.database] == [f"train/{row}" for row in range(6)]
    assert dataset.judgements["test/1"].grades == {"train/1": 1, "train/4": 1}


def test_names_of_a_class_label_stand_for_its_numbers(root):
    assert [ref.attributes["label"] for ref in load(root).queries] == ["cup", "hat", "key"]


def test_files_have_the_bytes_and_are_written_once(root):
    first = load(root)
    stamps = {ref.path: ref.path.stat().st_mtime_ns for ref in (*first.database, *first.queries)}
    table = pq.read_table(root / "data" / "train-00000-of-00002.parquet").to_pylist()
    assert first.database[1].path.read_bytes() == table[1]["image"]["bytes"]
    assert first.database[1].path.suffix == ".png"
    assert load(root) == first
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    assert sorted(path for path in (root.parent / "images").rglob("*") if path.is_file()) == sorted(stamps)


def test_a_file_that_was_cut_short_is_written_again(root):
    path = load(root).database[0].path
    data = path.read_bytes()
    path.write_bytes(data[:10])
    load(root)
    assert path.read_bytes() == data


def test_what_save_to_disk_makes_gives_the_same(root, tmp_path):
    rng = np.random.default_rng(0)
    for split, count in (("train", 6), ("test", 3)):
        save_to_disk(tmp_path / "saved", split, sample.make_table(split, count, rng))
    (tmp_path / "saved" / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    saved, expected = load(tmp_path / "saved"), load(root)
    assert (saved.database, saved.queries) == (expected.database, expected.queries)
    assert saved.judgements == expected.judgements


def test_ids_and_splits_may_come_from_columns(tmp_path):
    rows = [
        {"file": sample.encode(np.random.default_rng(row)), "who": f"w{row % 2}", "key": row, "part": part}
        for row, part in enumerate(["db", "db", "q", "other"])
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "all.parquet")
    columns = {"image": "file", "label": "who", "id": "key", "split": "part"}
    dataset = load(tmp_path, **columns, database_split="db", query_split="q", images=tmp_path / "images")
    assert [ref.id for ref in dataset.database] == ["0", "1"]
    assert {id: judgement.grades for id, judgement in dataset.judgements.items()} == {"2": {"0": 1}}


def test_paths_are_below_the_root_and_no_label_no_positives(tmp_path):
    for split, rows in (("train", [("a.jpg", "x")]), ("test", [("b.jpg", None), ("c.jpg", "x")])):
        table = pa.table({"image": [path for path, _ in rows], "label": [label for _, label in rows]})
        pq.write_table(table, tmp_path / f"{split}-0.parquet")
    dataset = load(tmp_path)
    assert dataset.database[0].path == tmp_path / "a.jpg"
    assert {id: dict(j.grades) for id, j in dataset.judgements.items()} == {"test/0": {}, "test/1": {"train/0": 1}}


def test_one_split_is_searched_in_itself_without_each_image(root):
    judgement = load(root, query_split="train").judgements["train/0"]
    assert (judgement.grades, judgement.ignored) == ({"train/3": 1}, {"train/0"})
    assert load(root, query_split="").queries == ()


def test_a_split_that_is_not_there_is_refused_with_those_that_are(root):
    with pytest.raises(ManifestError, match="no split 'validation'") as caught:
        load(root, query_split="validation")
    assert caught.value.actual == "'test', 'train'"


def test_a_column_that_is_not_there_is_refused_with_those_that_are(root):
    with pytest.raises(ManifestError, match="no column kind") as caught:
        load(root, label="kind")
    assert caught.value.actual == "image, label, name"


@pytest.mark.parametrize("name", ["train-0.parquet", "train/data-0.arrow"])
@pytest.mark.parametrize("content", [b"", b"PAR1 and no more", bytes(64)])
def test_broken_files_are_refused(tmp_path, name, content):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ManifestError, match="0"):
        load(tmp_path)


def test_ids_twice_and_rows_without_an_image_are_refused(tmp_path):
    pq.write_table(pa.table({"image": ["a", "b"], "label": [1, 1], "id": ["x", "x"]}), tmp_path / "train-0.parquet")
    with pytest.raises(ManifestError, match="row 1 of 'train'"):
        load(tmp_path, id="id", query_split="")
    pq.write_table(pa.table({"image": ["a", None], "label": [1, 1]}), tmp_path / "train-0.parquet")
    with pytest.raises(ManifestError, match="train/1 has no image"):
        load(tmp_path, query_split="")


def test_a_place_that_cannot_be_written_to_is_a_storage_error(root, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot be written"):
        load(root, images=tmp_path / "file")
