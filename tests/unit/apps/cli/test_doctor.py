"""`resight doctor`, and the page of the environment variables."""

import re
from pathlib import Path

import pytest
from support.running import run

from resight.apps.cli import doctor

ROOT = Path(__file__).resolve().parents[4]
PAGE = ROOT / "docs" / "reference" / "environment.md"
INTERNAL = {"RESIGHT_AVX", "RESIGHT_QDRANT"}  # of C, and a prefix of names
NAME = re.compile(r"RESIGHT_[A-Z]+(?:_[A-Z]+)*\b")


def test_a_working_installation_has_no_problem_and_names_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESIGHT_QDRANT_KEY", "a secret")
    monkeypatch.setenv("RESIGHT_CACHE", "somewhere")
    answer = {}
    ran = run("doctor", "--no-gpu", "--json")
    for one in ran.answer:
        answer.setdefault(one["part"], []).append(one)
    assert ran.code == 0
    assert {"resight", "system", "packages", "kernels", "weights", "decoding", "cache", "disk"} <= set(answer)
    assert answer["decoding"][0]["detail"] == "works, in protected processes"
    assert "numpy " in answer["packages"][0]["detail"]
    variables = [one["detail"] for one in answer["variable"]]
    assert "RESIGHT_QDRANT_KEY=…" in variables and "RESIGHT_CACHE=somewhere" in variables
    assert "secret" not in ran.out


def test_what_the_default_needs_is_a_problem_with_its_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "CORE", ("numpy", "no-such-package"))
    ran = run("doctor", "--no-gpu")
    assert ran.code == 5
    assert "PROBLEM  packages    missing: no-such-package" in ran.out
    assert "-m pip install no-such-package" in ran.out


def test_the_page_names_every_variable_that_the_code_reads() -> None:
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "src" / "resight").rglob("*.py"))
    used = {name for source in sources for name in NAME.findall(source)} - INTERNAL
    assert used | {"RESIGHT_DATA"} == set(NAME.findall(PAGE.read_text(encoding="utf-8")))
