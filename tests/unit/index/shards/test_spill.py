from pathlib import Path

import pytest
from support.builders import global_rows, ragged_rows

from resight.index.shards.spill import spill

NAMES = [f"image {number}" for number in range(20)]


def test_spilled_rows_can_be_read_repeatedly_and_the_source_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("resight.index.shards.spill.BUFFER_BYTES", 40)  # several files per shard
    read = []

    def chunks():
        read.append(1)
        return iter([ragged_rows(NAMES), global_rows(["more"], [[9, 9]])])

    spilled = spill(chunks, 2, tmp_path)
    for _ in range(2):
        names = [[name for part in shard() for name in part.ids] for shard in spilled]
        assert sorted(name for part in names for name in part) == sorted([*NAMES, "more"])
        assert [len(part) for part in names] == [shard.images for shard in spilled]
        rows = [part for shard in spilled for part in shard()]
        assert sum(len(part) for part in rows) == len(ragged_rows(NAMES)) + 1
    assert read == [1]
