"""A process that adds images, killed at some moment, and collections compared byte by byte."""

import subprocess
import time
from pathlib import Path

import resight


def open_plain(path: Path) -> resight.Collection:
    """Without a network: what is killed here is the writing."""
    return resight.open(path, "sift")


def kill_after(process: subprocess.Popen[str], lines: int, pause: float) -> int:
    """Kill it `pause` seconds after its `lines`-th report; gives the last report that it made."""
    assert process.stdout is not None
    reports = [process.stdout.readline() for _ in range(lines)]
    time.sleep(pause)
    process.kill()
    reports += process.stdout.readlines()
    process.stdout.close()
    assert process.wait() == -9, "it had finished before it was killed: the test needs more images"
    return int(reports[-1]) if reports else 0


def check_equal(first: resight.Collection, second: resight.Collection) -> None:
    """The same ids, the same metadata, and the same bytes in every row of every branch."""
    assert first.metadata.spaces == second.metadata.spaces
    ids = sorted(record.id for record in second.records())
    assert sorted(record.id for record in first.records()) == ids
    assert list(first.records(ids)) == list(second.records(ids))
    for branch in range(len(first.metadata.spaces)):
        for rows, others in zip(first.descriptors(branch, ids), second.descriptors(branch, ids), strict=True):
            assert rows.ids == others.ids
            for part in ("vectors", "owners", "boxes", "weights", "points", "words"):
                mine, theirs = getattr(rows, part), getattr(others, part)
                assert (mine is None) == (theirs is None)
                assert mine is None or (mine.dtype, mine.tobytes()) == (theirs.dtype, theirs.tobytes())
