"""A collection that another process tidies while this one searches it."""

import time
from pathlib import Path

import pytest
from support.scenes import draw_scene, write_jpeg

import resight
from resight.apps.service.jobs.compaction import CompactionProcess
from resight.collection import metadata
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


def wait(compaction: CompactionProcess) -> float:
    deadline = time.monotonic() + 120
    while (took := compaction.poll()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return took


def test_files_and_indexes_are_put_together_and_answers_stay_the_same(own: Path) -> None:
    photos = resight.open(own)
    before = photos.prepare()
    wanted = before.ask(SearchRequest(own.parent / "2.jpg", 4)).hits
    parts = len(list((own / "indexes").iterdir()))
    compaction = CompactionProcess(photos)
    compaction.start()
    assert wait(compaction) > 0
    assert compaction.poll() is None and not compaction.is_busy
    now = photos.prepare()
    assert now.version > before.version
    assert len(list((own / "indexes").iterdir())) <= parts
    assert [(hit.id, hit.probability) for hit in now.ask(SearchRequest(own.parent / "2.jpg", 4)).hits] == [
        (hit.id, hit.probability) for hit in wanted
    ]


def test_while_somebody_else_writes_it_is_left_for_later(own: Path) -> None:
    compaction = CompactionProcess(resight.open(own))
    with writer_lock(own), pytest.raises(CollectionBusy, match="another process writes"):
        compaction.start()
        wait(compaction)
    assert not compaction.is_busy


def test_what_goes_wrong_is_told(own: Path) -> None:
    compaction = CompactionProcess(resight.open(own))
    for name in (metadata.FILE, metadata.COPY):
        (own / name).write_text("{")
    compaction.start()
    with pytest.raises(CollectionError, match=r"the compaction failed[^$]*collection\.json"):
        wait(compaction)
    assert not compaction.is_busy


def test_it_can_be_stopped(own: Path) -> None:
    photos = resight.open(own)
    compaction = CompactionProcess(photos)
    compaction.start()
    compaction.stop()
    compaction.stop()
    assert len(resight.open(own).search(own.parent / "2.jpg", k=4)) == 4
