"""What every store promises, whatever it keeps its rows in."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from resight import plugins, store
from resight.errors import CollectionError, SpaceMismatch
from resight.store import ImageRecord, Layout, Record, Store
from resight.types import Descriptors

LAYOUT = (Layout("float32", 2, space="global"), Layout("uint8", 3))
ROOT = Path.cwd().anchor
HOSTILE = ["it's", 'a "b"', "') OR ('1'='1", "ü/日本.jpg", "a\\b", "%", "", "-- x", "nul\x00byte", "line\nbreak"]

Open = Callable[..., Store]


@pytest.fixture(params=plugins.names("resight.store"))
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    def open_store(layout: tuple[Layout, ...] = LAYOUT, folder: str = "collection") -> Store:
        return store.build(request.param, folder=tmp_path / folder, layout=layout)

    yield open_store


def make(id: str, rows: int = 2, value: int = 0, **image: object) -> Record:
    """An image whose local rows count up from `value`."""
    whole = Descriptors((id,), np.full((1, 2), value, np.float32), np.zeros(1, np.int32), space="global")
    local = Descriptors(
        (id,),
        np.arange(value, value + 3 * rows, dtype=np.uint8).reshape(rows, 3),
        np.zeros(rows, np.int32),
        points=np.full((rows, 4), value + 0.5, np.float32),
        words=np.arange(rows, dtype=np.int32) + value,
        seeds=np.full((rows, 4), value + 0.25, np.float32),
    )
    settings = {"sha256": "ab", "bytes": 10, "modified_ns": 2**60, "size": (640, 480)} | image
    return Record(ImageRecord(id, Path(ROOT) / "photos" / "x.jpg", **settings), (whole, local))


def test_what_was_written_comes_back_the_same(open_store: Open) -> None:
    attributes = {"label": "Mona Lisa", "lat": 48.86, "lon": -2.5, "room": 6, "sold": False, "note": "naïve"}
    open_store().write([make("a", rows=2, value=7, attributes=attributes)])
    reopened = open_store(layout=())
    (image,) = reopened.metadata()
    assert image == make("a", attributes=attributes).image
    (local,) = reopened.descriptors(1)
    assert local.ids == ("a",)
    assert local.vectors.dtype == np.uint8
    assert local.vectors.tolist() == [[7, 8, 9], [10, 11, 12]]
    assert local.owners.tolist() == [0, 0]
    assert local.points is not None and local.points.tolist() == [[7.5] * 4] * 2
    assert local.words is not None and local.words.tolist() == [7, 8]
    assert local.seeds is not None and local.seeds.tolist() == [[7.25] * 4] * 2
    assert local.boxes is None and local.weights is None
    (whole,) = reopened.descriptors(0)
    assert whole.vectors.tolist() == [[7, 7]] and whole.space == "global"
    assert reopened.layout == LAYOUT


def test_a_label_that_is_a_number_stays_a_number(open_store: Open) -> None:
    kept = open_store()
    kept.write([make("a", attributes={"label": 12, "lat": "north"})])
    assert [image.attributes for image in kept.metadata()] == [{"label": 12, "lat": "north"}]


def test_images_asked_for_come_in_the_order_asked_even_twice(open_store: Open) -> None:
    kept = open_store()
    kept.write([make("a", rows=1, value=1), make("b", rows=2, value=2)])
    kept.write([make("c", rows=3, value=3)])
    (local,) = kept.descriptors(1, ["c", "a", "c"])
    assert local.ids == ("c", "a", "c")
    assert local.owners.tolist() == [0, 0, 0, 1, 2, 2, 2]
    assert local.vectors[:, 0].tolist() == [3, 6, 9, 1, 3, 6, 9]
    assert [image.id for image in kept.metadata(["b", "a"])] == ["b", "a"]


def test_nothing_asked_for_gives_nothing(open_store: Open) -> None:
    kept = open_store()
    kept.write([])
    assert (len(kept), list(kept.metadata()), list(kept.descriptors(0))) == (0, [], [])
    kept.write([make("a")])
    assert (list(kept.metadata([])), list(kept.descriptors(0, [])), kept.remove([])) == ([], [], 0)


def test_an_id_that_is_not_there_is_named(open_store: Open) -> None:
    kept = open_store()
    kept.write([make("a")])
    with pytest.raises(CollectionError, match="'ghost'"):
        kept.metadata(["a", "ghost"])
    with pytest.raises(CollectionError, match="'ghost'"):
        kept.descriptors(0, ["ghost"])
    with pytest.raises(CollectionError, match="0 to 1"):
        kept.descriptors(2)


def test_an_image_without_rows_is_kept(open_store: Open) -> None:
    kept = open_store()
    kept.write([make("empty", rows=0), make("full", rows=1, value=5)])
    (local,) = kept.descriptors(1, ["empty", "full", "empty"])
    assert local.owners.tolist() == [1]
    assert local.vectors.tolist() == [[5, 6, 7]]
    (alone,) = kept.descriptors(1, ["empty"])
    assert alone.vectors.shape == (0, 3) and alone.points is not None and alone.points.shape == (0, 4)


def test_only_the_fields_asked_for_are_read(open_store: Open) -> None:
    kept = open_store()
    kept.write([make("a")])
    (local,) = kept.descriptors(1, fields=["words"])
    assert local.words is not None and local.points is None


def test_a_scan_comes_in_batches_and_visits_each_image_once(open_store: Open) -> None:
    kept = open_store()
    for start in (0, 4, 8):
        kept.write([make(str(number)) for number in range(start, start + 4)])
    parts = list(kept.descriptors(1, batch=5))
    assert [len(part.ids) for part in parts] == [5, 5, 2]
    assert [id for part in parts for id in part.ids] == [str(number) for number in range(12)]


def test_writing_an_id_again_replaces_its_image(open_store: Open) -> None:
    kept = open_store()
    kept.write([make("a", rows=2, value=1), make("b")])
    kept.write([make("new"), make("a", rows=1, value=9, sha256="changed")])
    assert len(kept) == 3
    (local,) = kept.descriptors(1, ["a"])
    assert local.vectors.tolist() == [[9, 10, 11]]
    assert next(kept.metadata(["a"])).sha256 == "changed"


def test_removing_counts_what_was_there(open_store: Open) -> None:
    kept = open_store()
    kept.write([make("a"), make("b"), make("c")])
    assert kept.remove(["c", "a", "ghost", "a"]) == 2
    assert [image.id for image in open_store().metadata()] == ["b"]
    kept.write([make("a")])
    assert len(kept) == 2


def test_hostile_ids_are_only_ids(open_store: Open) -> None:
    kept = open_store()
    kept.write([make(id) for id in HOSTILE])
    kept.write([make(id, value=1) for id in HOSTILE])
    assert [image.id for image in kept.metadata(HOSTILE)] == HOSTILE
    for count, id in enumerate(HOSTILE, 1):
        assert kept.remove([id]) == 1
        assert len(kept) == len(HOSTILE) - count


def test_a_record_that_does_not_fit_keeps_the_whole_write_out(open_store: Open) -> None:
    kept = open_store()
    good, (whole, local) = make("good"), make("bad").descriptors
    wrong = {
        r"float32 \[n, 2\]": (replace(whole, vectors=np.zeros((1, 5), np.float32)), local),
        r"float64 \[1, 2\]": (replace(whole, vectors=np.zeros((1, 2))), local),
        "points": (whole, replace(local, points=np.zeros((1, 4), np.float32))),
        "words": (whole, replace(local, words=np.zeros((2, 2), np.int32))),
        "rows of other images": (whole, replace(local, ids=("good",))),
        "2 branches": (whole,),
    }
    for message, descriptors in wrong.items():
        with pytest.raises(CollectionError, match=message):
            kept.write([good, replace(make("bad"), descriptors=descriptors)])
    with pytest.raises(SpaceMismatch, match="other"):
        kept.write([good, replace(make("bad"), descriptors=(replace(whole, space="other"), local))])
    with pytest.raises(CollectionError, match="relative"):
        kept.write([good, replace(make("bad"), image=replace(good.image, id="bad", path=Path("x.jpg")))])
    with pytest.raises(CollectionError, match="'good'"):
        kept.write([good, good])
    with pytest.raises(CollectionError, match="UTF-8"):
        kept.write([good, make("bad\udcff")])
    assert len(open_store()) == 0


def test_images_of_one_branch_agree_on_their_parts(open_store: Open) -> None:
    kept = open_store()
    whole, local = make("b").descriptors
    kept.write([make("a"), replace(make("b"), descriptors=(whole, replace(local, words=None)))])
    with pytest.raises(CollectionError, match="words"):
        list(kept.descriptors(1))
    assert len(next(kept.descriptors(1, fields=["points"]))) == 4


def test_a_collection_that_is_not_there_is_not_made_by_reading(open_store: Open, tmp_path: Path) -> None:
    with pytest.raises(CollectionError, match="no collection"):
        open_store(layout=(), folder="typo")
    assert not (tmp_path / "typo").exists()


def test_a_collection_of_another_layout_is_refused(open_store: Open) -> None:
    open_store()
    with pytest.raises(SpaceMismatch, match="dim=4"):
        open_store(layout=(Layout("float32", 4), LAYOUT[1]))


def test_a_reader_keeps_its_state_until_it_refreshes(open_store: Open) -> None:
    writer = open_store()
    writer.write([make("a", value=1), make("b", value=1)])
    reader = open_store()
    begun = reader.descriptors(1, batch=1)
    assert next(begun).ids == ("a",)
    writer.write([make("b", value=50), make("c")])
    writer.remove(["a"])
    writer.compact()
    assert next(begun).vectors[0, 0] == 1
    assert [image.id for image in reader.metadata()] == ["a", "b"]
    assert reader.refresh()
    assert not reader.refresh()
    assert sorted(image.id for image in reader.metadata()) == ["b", "c"]


def test_an_iterator_is_not_disturbed_by_the_writes_of_its_own_store(open_store: Open) -> None:
    kept = open_store()
    kept.write([make("a", value=1), make("b", value=2)])
    begun = kept.descriptors(1, batch=1)
    kept.remove(["b"])
    kept.write([make("a", value=90)])
    assert [part.vectors[0, 0] for part in begun] == [1, 2]


def test_a_snapshot_stays_as_it_is_whatever_its_store_does(open_store: Open) -> None:
    kept = open_store()
    kept.write([make("a", value=1), make("b", value=2)])
    before = kept.snapshot()
    kept.remove(["b"])
    kept.write([make("a", value=90), make("c")])
    kept.compact()
    assert [len(before), before.version < kept.version] == [2, True]
    assert [image.id for image in before.metadata()] == ["a", "b"]
    assert [part.vectors[0, 0] for part in before.descriptors(1, batch=1)] == [1, 2]
    assert [kept.snapshot().version, len(kept.snapshot())] == [kept.version, 2]


def test_a_stamp_tells_what_was_written_again(open_store: Open) -> None:
    """Also where the same was written: what matters is that no change goes unnoticed."""
    kept = open_store()
    kept.write([make("a", value=1), make("b", value=2), make("c", value=3)])
    before = kept.snapshot().stamps
    kept.write([make("a", value=9)])
    kept.remove(["b"])
    kept.write([make("b", value=2), make("d")])
    after = kept.snapshot().stamps
    assert list(before) == ["a", "b", "c"]
    assert sorted(after) == ["a", "b", "c", "d"]
    assert {id for id in before if after[id] == before[id]} == {"c"}


def test_many_threads_read_a_snapshot_as_one_does(open_store: Open) -> None:
    kept = open_store()
    kept.write([make(str(number), value=number) for number in range(50)])
    seen = kept.snapshot()

    def read(first: int) -> list[tuple[str, int]]:
        ids = [str(number) for number in range(first, 50, 8)]
        rows = [int(part.vectors[0, 0]) for part in seen.descriptors(1, ids, batch=1)]
        return list(zip((image.id for image in seen.metadata(ids)), rows, strict=True))

    with ThreadPoolExecutor(8) as pool:
        found = dict(pair for pairs in pool.map(read, range(8)) for pair in pairs)
    assert found == {str(number): number for number in range(50)}


def test_many_small_writes_scatter_a_store_until_it_is_compacted(open_store: Open) -> None:
    kept = open_store()
    kept.write([make(str(number)) for number in range(100)])
    assert not kept.is_scattered
    for number in range(100):
        kept.write([make(f"one {number}")])
    assert kept.is_scattered
    kept.compact()
    assert not kept.is_scattered


def test_a_second_writer_sees_what_the_first_one_wrote(open_store: Open) -> None:
    first, second = open_store(), open_store()
    assert len(second) == 0
    first.write([make("a", value=1)])
    second.write([make("a", value=2), make("b")])
    assert second.remove(["b"]) == 1
    first.write([make("b")])
    assert [image.id for image in open_store().metadata()] == ["a", "b"]


def test_compacting_changes_nothing_but_the_space(open_store: Open, tmp_path: Path) -> None:
    kept = open_store()
    for number in range(10):
        kept.write([make(str(number), value=number)])
    kept.remove(["3"])
    kept.write([make("4", value=44)])
    before = {part.ids: part.vectors.tolist() for part in kept.descriptors(1, batch=1)}
    files = count_files(tmp_path)
    kept.compact(keep=timedelta(0))
    assert count_files(tmp_path) < files
    assert {part.ids: part.vectors.tolist() for part in kept.descriptors(1, batch=1)} == before
    assert {part.ids: part.vectors.tolist() for part in open_store().descriptors(1, batch=1)} == before
    kept.write([make("11")])
    assert len(kept) == 10


def test_random_histories_agree_with_a_dictionary(open_store: Open) -> None:
    random, kept, truth = np.random.default_rng(5), open_store(), dict[str, int]()
    for _ in range(25):
        ids = [str(number) for number in random.choice(12, size=random.integers(1, 5), replace=False)]
        value = int(random.integers(0, 200))
        if random.random() < 0.3:
            assert kept.remove(ids) == len(truth.keys() & set(ids))
            truth = {id: value for id, value in truth.items() if id not in ids}
        else:
            kept.write([make(id, rows=1, value=value) for id in ids])
            truth |= dict.fromkeys(ids, value)
        if random.random() < 0.2:
            kept.compact()
        found = [(part.ids[0], int(part.vectors[0, 0])) for part in kept.descriptors(1, batch=1)]
        assert len(found) == len(truth) == len(kept)
        assert dict(found) == truth
        for part in kept.descriptors(1, list(truth)):
            assert all(earlier <= later for earlier, later in pairwise(part.owners))


def count_files(folder: Path) -> int:
    return sum(path.is_file() for path in folder.rglob("*"))
