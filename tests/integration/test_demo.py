"""The demonstration on the photographs of the package mvtb-data."""

import importlib.util
from pathlib import Path

import pytest
from support.running import run


@pytest.mark.skipif(importlib.util.find_spec("mvtbdata") is None, reason="needs the extra demo")
def test_the_demonstration_is_right_and_writes_its_page(tmp_path: Path) -> None:
    answer = run("demo", "--out", tmp_path / "demo", "--json").answer
    assert len(answer["questions"]) == 9
    assert answer["right"] >= 8
    assert answer["right"] == sum(question["right"] for question in answer["questions"])
    page = tmp_path / "demo" / "demo.html"
    assert answer["page"] == str(page)
    text = page.read_text(encoding="utf-8")
    assert all(question["question"] in text for question in answer["questions"])
    assert "http://" not in text.replace("http://www.w3.org/", "")
