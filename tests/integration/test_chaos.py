"""A few power cuts, kills and damages; `benchmarks/chaos.py` makes hundreds."""

from pathlib import Path
from typing import Any

import pytest
from support.lossy_disk import is_available

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)


@pytest.mark.skipif(not is_available(), reason="needs root, a loop device and ext4")
def test_a_power_cut_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    from chaos_parts import cuts

    _check(cuts.cut_power(tmp_path, count=3, seed=1))


def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    from chaos_parts import cuts

    _check(cuts.kill(tmp_path, count=2, seed=1))


@pytest.mark.skipif(not is_available(), reason="needs root, a loop device and ext4")
def test_a_power_cut_of_the_service_loses_no_accepted_upload(tmp_path: Path) -> None:
    from chaos_parts import service_cuts

    _check(service_cuts.cut_power(tmp_path, count=2, seed=1))


def test_a_disk_that_is_full_from_any_call_on_loses_nothing(tmp_path: Path) -> None:
    from chaos_parts import calls

    found = calls.fail_calls(tmp_path, count=6, seed=1)
    assert (found.get("bad", 0), found.get("why", [])) == (0, [])


def test_damage_is_named_and_repaired(tmp_path: Path) -> None:
    from chaos_parts import damage

    assert damage.repair_damage(tmp_path, count=8, seed=1)["why"] == []


def test_damage_gives_the_same_answer_or_an_error(tmp_path: Path) -> None:
    from chaos_parts import damage

    found = damage.damage_files(tmp_path, count=40, seed=1)
    assert (found["wrong_at"], found["first"]) == ([], [])
    assert int(str(found["more_than_whole_mib"])) < 1024


def _check(found: dict[str, Any]) -> None:
    assert found["acknowledged"] > 0
    assert (found["lost"], found["why"]) == (0, [])
