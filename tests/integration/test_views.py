"""A collection that many threads search while it is written."""

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from support.scenes import draw_scene, write_jpeg

import resight
from resight.collection.view import View
from resight.errors import CollectionError, ImageError, InputError
from resight.search.request import SearchRequest, StoredImage
from resight.types import Hit, ImageRef

THREADS = 8


def tell(hits: list[Hit]) -> list[tuple[object, ...]]:
    """A hit to the last bit."""
    return [(hit.id, hit.score, hit.probability, hit.box, dict(hit.stages)) for hit in hits]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of six scenes that are encoded and compared in no time."""
    folder = tmp_path_factory.mktemp("small")
    for number in range(6):
        write_jpeg(folder / f"scene_{number:02}.jpg", draw_scene(number, 200, 160))
    return folder


@pytest.mark.parametrize(("preset", "searches"), [("sift", 20), ("sift_tokens", 2)])
def test_many_threads_find_what_one_finds(small: Path, tmp_path: Path, preset: str, searches: int) -> None:
    photos = resight.open(tmp_path / "c.resight", preset)
    photos.add(small)
    files = sorted(small.iterdir())
    alone = {file: tell(photos.search(file, k=3)) for file in files}
    fresh = resight.open(tmp_path / "c.resight")  # nothing of it is loaded yet: all threads ask for it at once
    begin = threading.Barrier(THREADS)

    def search(thread: int) -> list[bool]:
        begin.wait()
        asked = [files[(thread + turn) % len(files)] for turn in range(searches)]
        return [tell(fresh.search(file, k=3)) == alone[file] for file in asked]

    with ThreadPoolExecutor(THREADS) as pool:
        assert [all(same) for same in pool.map(search, range(THREADS))] == [True] * THREADS


def test_what_is_prepared_changes_only_when_it_is_prepared_again(own: Path) -> None:
    photos = resight.open(own)
    before = photos.prepared()
    photos.delete("scene_07.jpg")
    assert photos.view().find("scene_07.jpg") is None
    assert photos.prepared() is before
    now = photos.prepare()
    assert now.find("scene_07.jpg") is None
    assert photos.prepared() is now
    assert photos.prepare() is now


def test_a_view_stays_as_it_is_while_images_come_and_go(own: Path, view: Path, tmp_path: Path) -> None:
    photos = resight.open(own)
    before = photos.view()
    photos.delete("scene_07.jpg")
    photos.add([ImageRef("other", write_jpeg(tmp_path / "other.jpg", draw_scene(99)))])
    photos.tidy()
    now = photos.view()
    assert before.version < now.version
    assert [len(before), len(now)] == [12, 12]
    assert [before.ask(SearchRequest(view, 1)).hits[0].id, before.find("other")] == ["scene_07.jpg", None]
    assert now.find("scene_07.jpg") is None
    assert "scene_07.jpg" not in [hit.id for hit in now.ask(SearchRequest(view, 12)).hits]
    assert now.ask(SearchRequest(tmp_path / "other.jpg", 1)).hits[0].id == "other"
    assert photos.view() is now


def test_searches_go_on_while_another_thread_writes(small: Path, tmp_path: Path) -> None:
    photos, view = resight.open(tmp_path / "c.resight", "sift"), small / "scene_04.jpg"
    photos.add(small)
    files = [write_jpeg(tmp_path / f"new_{number}.jpg", draw_scene(50 + number, 200, 160)) for number in range(3)]
    refs = [ImageRef(file.name, file) for file in files]
    expected = {6: tell(photos.search(view, k=1))}
    photos.add(refs)
    expected[9] = tell(photos.search(view, k=1))
    done = threading.Event()

    def write() -> None:
        try:
            for _ in range(4):
                photos.delete([ref.id for ref in refs])
                photos.add(refs)
        finally:
            done.set()

    def search(_: int) -> int:
        searched = 0
        while not done.is_set() or searched == 0:
            seen = photos.view()
            # A view has all three of what was added together, or none of it.
            assert tell(list(seen.ask(SearchRequest(view, 1)).hits)) == expected[len(seen)]
            searched += 1
        return searched

    with ThreadPoolExecutor(4) as pool:
        writing = pool.submit(write)
        assert all(pool.map(search, range(3)))
        writing.result()
    assert len(photos) == 9


def test_what_another_process_would_see_is_the_same(own: Path, view: Path, tmp_path: Path) -> None:
    """The index in segments of one process serves the next one, and gives what a whole one gives."""
    photos = resight.open(own)
    photos.delete(["scene_01.jpg", "scene_02.jpg"])
    photos.add([ImageRef("other", write_jpeg(tmp_path / "other.jpg", draw_scene(99)))])
    here = tell(photos.search(view, k=20))
    assert tell(resight.open(own).search(view, k=20)) == here
    shutil.rmtree(own / "indexes")
    assert tell(resight.open(own).search(view, k=20)) == here


def test_stages_end_with_the_answer(own: Path, view: Path) -> None:
    seen = resight.open(own).view()
    shortlist, verified = seen.ask_in_stages(SearchRequest(view, 3))
    assert [shortlist.stage, verified.stage] == ["shortlist", "verified"]
    assert len(shortlist.hits) == 3
    assert [hit.probability for hit in shortlist.hits] == [None] * 3
    assert shortlist.position is None
    assert tell(list(verified.hits)) == tell(list(seen.ask(SearchRequest(view, 3)).hits))
    assert "shortlist" in shortlist.ranking.seconds
    assert set(shortlist.ranking.seconds) < set(verified.ranking.seconds)


def test_a_query_that_is_encoded_can_be_asked_again(own: Path, view: Path) -> None:
    photos = resight.open(own)
    query = photos.encode_query(view)
    assert tell(list(photos.ask(query, 4).hits)) == tell(photos.search(view, 4))
    with pytest.raises(InputError, match="encoded already"):
        photos.ask(query, box=(0, 0, 10, 10))


def check_query_by_id(seen: View, path: Path) -> None:
    stored = seen.encode_query(SearchRequest(StoredImage(path.name)))
    asked = seen.ask(SearchRequest(path)).query
    assert (stored.id, stored.size, stored.outline) == (asked.id, asked.size, asked.outline)
    for one, other in zip(stored.descriptors, asked.descriptors, strict=True):
        assert np.array_equal(one.vectors, other.vectors)
    assert tell(list(seen.ask(SearchRequest(stored, 4)).hits)) == tell(list(seen.ask(SearchRequest(path, 4)).hits))


@pytest.mark.parametrize("preset", ["sift_vlad", "sift", "sift_tokens"])
def test_a_stored_image_is_the_query_that_its_file_is(small: Path, tmp_path: Path, preset: str) -> None:
    photos = resight.open(tmp_path / "c.resight", preset)
    photos.add(small)
    check_query_by_id(photos.view(), small / "scene_03.jpg")


def test_a_stored_image_whose_file_has_changed_is_not_asked_for_by_what_the_file_shows_now(
    own: Path, tmp_path: Path
) -> None:
    photos = resight.open(own)
    file = write_jpeg(tmp_path / "own.jpg", draw_scene(40))
    photos.add([ImageRef("own", file)])
    seen = photos.view()
    write_jpeg(file, draw_scene(41))
    with pytest.raises(CollectionError, match="has changed"):
        seen.encode_query(SearchRequest(StoredImage("own")))
    file.unlink()
    with pytest.raises(ImageError):
        seen.encode_query(SearchRequest(StoredImage("own")))


def test_an_image_that_is_not_there_cannot_be_asked_for(own: Path) -> None:
    with pytest.raises(CollectionError, match="not in the collection"):
        resight.open(own).view().encode_query(SearchRequest(StoredImage("nobody")))
