"""The refresher, and the cache of results."""

import threading
from typing import Any

import pytest

from resight.apps.service.state import Refresher, ResultCache


def test_the_refresher_goes_on_after_an_error(caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Semaphore(0)
    faults = [ValueError(), ValueError()]

    def refresh() -> None:
        if faults:
            raise faults.pop()
        done.release()

    refresher = Refresher(refresh, interval=0.01)
    refresher.start()
    assert done.acquire(timeout=10) and done.acquire(timeout=10)
    refresher.stop()
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]


def test_a_refresher_that_never_started_stops() -> None:
    Refresher(lambda: None).stop()


def test_the_last_answers_are_kept() -> None:
    answers: Any = ResultCache(size=2)
    for question in ("a", "b", "a", "c"):
        answers.put(question, f"answer to {question}")
    assert [answers.get(question) for question in "abc"] == ["answer to a", None, "answer to c"]


def test_an_answer_is_forgotten_in_time() -> None:
    answers: Any = ResultCache(lifetime=-1.0)
    answers.put("a", "answer")
    assert answers.get("a") is None
