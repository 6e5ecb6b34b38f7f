from typing import Any

from resight.apps.service.state import AnswerCache


def test_the_last_answers_are_kept() -> None:
    answers: Any = AnswerCache(size=2)
    for question in ("a", "b", "a", "c"):
        answers.put(question, f"answer to {question}")
    assert [answers.get(question) for question in "abc"] == ["answer to a", None, "answer to c"]


def test_an_answer_is_forgotten_in_time() -> None:
    answers: Any = AnswerCache(lifetime=-1.0)
    answers.put("a", "answer")
    assert answers.get("a") is None
