"""The functions refuse the arguments that their commands refuse, before they open anything."""

from typing import Any

import pytest

import resight
from resight.errors import InputError


@pytest.mark.parametrize(
    ("function", "given", "options", "problem"),
    [
        ("dedup", ["none"], {"least": 5}, "least = 5"),
        ("dedup", ["none"], {"least": float("nan")}, "least = nan"),
        ("dedup", ["none"], {"false_alarms": -0.1}, "false_alarms = -0.1"),
        ("match", ["none", "none"], {"least": "high"}, "least = 'high'"),
        ("match", ["none", "none"], {"candidates": 0}, "candidates = 0"),
        ("lookalikes", ["none", "none"], {"k": 2.5}, "k = 2.5"),
        ("lookalikes", ["none", "none"], {"diversity": 7}, "diversity = 7"),
        ("lookalikes", ["none", "none"], {"by": "colour"}, "no such way to compare"),
        ("audit", ["none", "none", "none"], {"k": 0}, "k = 0"),
        ("train", [], {"folder": "none", "minutes": -1}, "minutes = -1"),
        ("train", [], {"processes": 0}, "processes = 0"),
        ("plan", [], {"images": "many"}, "cannot plan for that many images"),
        ("plan", [], {"shards": 0}, "shards = 0"),
        ("plan", [], {"node_memory": -64}, "node_memory = -64"),
    ],
)
def test_numbers_outside_their_range_are_refused(
    function: str, given: list[str], options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        getattr(resight, function)(*given, **options)
    assert caught.value.expected and caught.value.fix
