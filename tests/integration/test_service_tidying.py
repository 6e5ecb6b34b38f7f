"""A collection that another process tidies while this one searches it."""

import time
from pathlib import Path

import pytest
from support.scenes import draw_scene, write_jpeg

import resight
from resight.apps.service.jobs.compaction import CompactionProcess
from resight.errors import CollectionBusy, CollectionError
from resight.files.lock import writer_lock
from resight.search.request import SearchRequest
from resight.types import ImageRef


@pytest.fixture
def own(tmp_path: Path) -> Path:
    photos = resight.open(tmp_path / "c.resight", "sift")
    for number in range(4):
        photos.add([ImageRef(f"{number}", write_jpeg(tmp_path / f"{number}.jpg", draw_scene(number, 200, 160)))])
        photos.prepare()  # a part of the index for each
    return photos.path


def wait(tidier: CompactionProcess) -> float:
    deadline = time.monotonic() + 120
    while (took := tidier.poll()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return took


def test_files_and_indexes_are_put_together_and_answers_stay_the_same(own: Path) -> None:
    photos = resight.open(own)
    before = photos.prepare()
    wanted = before.ask(SearchRequest(own.parent / "2.jpg", 4)).hits
    parts = len(list((own / "indexes").iterdir()))
    tidier = CompactionProcess(photos)
    tidier.start()
    assert wait(tidier) > 0
    assert tidier.poll() is None and not tidier.is_busy
    now = photos.prepare()
    assert now.version > before.version
    assert len(list((own / "indexes").iterdir())) <= parts
    assert [(hit.id, hit.probability) for hit in now.ask(SearchRequest(own.parent / "2.jpg", 4)).hits] == [
        (hit.id, hit.probability) for hit in wanted
    ]


def test_while_somebody_else_writes_it_is_left_for_later(own: Path) -> None:
    tidier = CompactionProcess(resight.open(own))
    with writer_lock(own), pytest.raises(CollectionBusy, match="somebody else writes"):
        tidier.start()
        wait(tidier)
    assert not tidier.is_busy


def test_what_goes_wrong_is_told(own: Path) -> None:
    tidier = CompactionProcess(resight.open(own))
    (own / "collection.json").write_text("{")
    tidier.start()
    with pytest.raises(CollectionError, match=r"could not be tidied[^$]*collection\.json"):
        wait(tidier)
    assert not tidier.is_busy


def test_it_can_be_stopped(own: Path) -> None:
    photos = resight.open(own)
    tidier = CompactionProcess(photos)
    tidier.start()
    tidier.stop()
    tidier.stop()
    assert len(resight.open(own).search(own.parent / "2.jpg", k=4)) == 4
