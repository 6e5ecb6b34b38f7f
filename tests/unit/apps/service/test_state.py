"""The refresher, and the cache of results."""

import threading
from pathlib import Path
from typing import Any

import pytest

from resight.apps.service.state import Refresher, ResultCache
from resight.errors import CollectionError


class Fake:
    """A collection that counts how often it was prepared, and cannot always be."""

    path = Path("fake")

    def __init__(self, fails: int = 0) -> None:
        self.left = fails
        self.prepared = threading.Semaphore(0)

    def prepare(self) -> None:
        if self.left:
            self.left -= 1
            raise CollectionError("damaged")
        self.prepared.release()


def watch(*collections: Any) -> Refresher:
    refresher = Refresher(collections, interval=0.01)
    refresher.start()
    return refresher


def test_every_collection_is_prepared_again_and_again() -> None:
    one, other = Fake(), Fake()
    refresher = watch(one, other)
    assert all(fake.prepared.acquire(timeout=10) for fake in (one, other, one, other))
    refresher.stop()


def test_a_state_that_cannot_be_opened_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    broken, whole = Fake(fails=2), Fake()
    refresher = watch(broken, whole)
    assert whole.prepared.acquire(timeout=10)
    assert broken.prepared.acquire(timeout=10)
    refresher.stop()
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]


def test_a_refresher_that_never_started_stops() -> None:
    Refresher([]).stop()


def test_the_last_answers_are_kept() -> None:
    answers: Any = ResultCache(size=2)
    for question in ("a", "b", "a", "c"):
        answers.put(question, f"answer to {question}")
    assert [answers.get(question) for question in "abc"] == ["answer to a", None, "answer to c"]


def test_an_answer_is_forgotten_in_time() -> None:
    answers: Any = ResultCache(lifetime=-1.0)
    answers.put("a", "answer")
    assert answers.get("a") is None
