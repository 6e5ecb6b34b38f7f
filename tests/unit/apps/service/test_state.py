"""The refresher, and the cache of results."""

import threading
from typing import Any

import pytest

from resight.apps.service.state import STATES, Refresher, ResultCache


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
        answers.put(question, ("view", f"answer to {question}"))
    found = [answers.get(question) for question in "abc"]
    assert found == [("view", "answer to a"), None, ("view", "answer to c")]


def test_answers_keep_only_a_few_states_of_a_collection_alive() -> None:
    answers: Any = ResultCache()
    states = [object() for _ in range(STATES + 2)]
    for number, state in enumerate(states):
        answers.put(number, (state, "answer"))
        answers.put(f"again {number}", (state, "answer"))
    assert [answers.get(number) is None for number in range(STATES + 2)] == [True, True] + [False] * STATES


def test_an_answer_is_forgotten_in_time() -> None:
    answers: Any = ResultCache(lifetime=-1.0)
    answers.put("a", ("view", "answer"))
    assert answers.get("a") is None
