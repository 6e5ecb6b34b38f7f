from pathlib import Path

import numpy as np
import pytest

from resight.collection.fit import fit_whitening as known
from resight.collection.fit.fit_whitening import pair_by_labels, read_pairs
from resight.errors import ManifestError

IDS = frozenset("abcd")


def write(folder: Path, *lines: str) -> Path:
    path = folder / "pairs.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def draw(labels: dict[str, object], seed: int = 0) -> list[tuple[str, str]]:
    return pair_by_labels(labels, np.random.default_rng(seed))


def test_images_with_the_same_label_make_all_their_pairs():
    assert draw({"a": 1, "b": 2, "c": 1, "d": 1, "e": None, "f": None}) == [("a", "c"), ("a", "d"), ("c", "d")]


def test_a_label_with_many_images_gives_a_draw_of_different_pairs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(known, "MOST_OF_A_LABEL", 20)
    labels: dict[str, object] = {f"{number:03}": "crowd" for number in range(200)}
    found = draw({**labels, "x": "few", "y": "few"})
    assert len(found) == len(set(found)) == 21
    assert all(first < second for first, second in found)
    assert found == draw({**labels, "x": "few", "y": "few"}) != draw({**labels, "x": "few", "y": "few"}, seed=1)


def test_numbers_count_every_pair_once():
    pairs = [known._unrank(number) for number in range(4950)]
    assert pairs[:4] == [(0, 1), (0, 2), (1, 2), (0, 3)]
    assert set(pairs) == {(a, b) for b in range(100) for a in range(b)}
    for second in (10**5, 10**6, 3 * 10**6):  # where a root in floating point could be one off
        first = second * (second - 1) // 2
        assert (known._unrank(first), known._unrank(first - 1)) == ((0, second), (second - 2, second - 1))


def test_a_file_gives_each_pair_once_and_none_that_differ(tmp_path: Path):
    path = write(tmp_path, "a,b,same,note", "b,a,1,x", "a,b,1,y", "c,d,0,z", "c,a,1,", "d,d,1,")
    assert read_pairs(path, IDS) == [("a", "b"), ("a", "c")]


def test_the_column_same_may_be_missing(tmp_path: Path):
    assert read_pairs(write(tmp_path, "a,b", "a,d"), IDS) == [("a", "d")]


def test_ids_that_do_not_exist_are_listed(tmp_path: Path):
    with pytest.raises(ManifestError) as caught:
        read_pairs(write(tmp_path, "a,b", "a,v", "w,x", "y,z"), IDS)
    assert "5 images" in caught.value.problem
    assert caught.value.actual == "'v', 'w', 'x', …"


@pytest.mark.parametrize(
    "lines", [("a,c", "a,b"), ("",), ("a,b,same", "a,b,yes"), ("a,b,same", "a,b"), ("a,b", "a")], ids=str
)
def test_a_file_that_breaks_the_format_is_refused(tmp_path: Path, lines: tuple[str, ...]):
    with pytest.raises(ManifestError):
        read_pairs(write(tmp_path, *lines), IDS)


def test_a_missing_or_binary_file_is_refused(tmp_path: Path):
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x81")
    for name in ("binary.csv", "missing.csv"):
        with pytest.raises(ManifestError, match=name):
            read_pairs(tmp_path / name, IDS)
