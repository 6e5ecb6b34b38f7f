from pathlib import Path

import pytest

from resight.audit.leaks.rgldv2 import apply_rgldv2
from resight.data.sets.gldv2 import list_removed
from resight.errors import ManifestError

LEFT, CLASSES = 1_578_905, 81_295


def write_table(path: Path, removed: dict[str, int], left: int = LEFT, classes: int = CLASSES) -> Path:
    """A table with the right counts; ids are short, as only their number matters here."""
    with path.open("w") as file:
        file.write("landmark_id,images\n")
        for gid, count in removed.items():
            file.write(f"{gid},{' '.join(['a'] * count)}\n")
        usual, more = divmod(left, classes)
        for number in range(classes):
            file.write(f"{1_000_000 + number},{'b ' * (usual + (number < more))}\n")
    return path


def test_the_published_table_gives_the_published_counts(tmp_path: Path) -> None:
    removed = {landmark.gid: landmark.images for landmark in list_removed()}
    applied = apply_rgldv2(write_table(tmp_path / "in.csv", removed), tmp_path / "out.csv")
    assert (len(applied.removed), sum(applied.removed.values())) == (18, 1565)
    assert (applied.images, applied.classes, applied.differences) == (LEFT, CLASSES, ())
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert len(lines) == CLASSES + 1
    assert not any(line.partition(",")[0] in removed for line in lines)


def test_another_table_is_told_what_differs(tmp_path: Path) -> None:
    applied = apply_rgldv2(write_table(tmp_path / "in.csv", {"6190": 97}, left=5, classes=5), tmp_path / "out.csv")
    assert applied.differences[0] == "class 6190 (Radcliffe Camera): 97 images removed, 98 images published"
    assert applied.differences[-2:] == (
        "5 images left, 1,578,905 published",
        "5 classes left, 81,295 published",
    )
    assert len(applied.differences) == 18 + 2


@pytest.mark.parametrize("text", ["", "id,url\n", "landmark_id,images\nabc,x\n", "landmark_id,images\n12\n"])
def test_another_kind_of_table_is_refused_and_nothing_is_written(tmp_path: Path, text: str) -> None:
    (tmp_path / "in.csv").write_text(text)
    with pytest.raises(ManifestError, match="landmark_id,images"):
        apply_rgldv2(tmp_path / "in.csv", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_a_missing_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="cannot be read"):
        apply_rgldv2(tmp_path / "none.csv", tmp_path / "out.csv")
