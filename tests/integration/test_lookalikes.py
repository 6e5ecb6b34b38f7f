"""`resight lookalikes` of drawn craters: form, not tint; no crater of the same ground; a contact sheet."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.craters import write_craters
from support.running import run

from resight.audit.likeness.find_lookalikes import find_lookalikes
from resight.collection import Collection, open_collection
from resight.errors import InputError

EVEN = {"crater_2", "crater_4", "crater_6"}  # with a peak, as the query


@pytest.fixture(scope="module")
def craters(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    root = tmp_path_factory.mktemp("craters")
    collection = open_collection(root / "craters.resight", "tokens")
    collection.add(write_craters(root / "crops"))
    return collection


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_the_same_form_comes_first_whatever_tint_and_light(craters: Collection) -> None:
    found = find_lookalikes(craters, "crater_0", 3, diversity=0)
    assert (found.by, found.compared, found.left_out) == ("form", 7, 2)  # the query, and the twin on the same ground
    assert {one.id for one in found.found} == EVEN


def test_a_file_that_the_collection_knows_is_found_by_its_content(craters: Collection) -> None:
    file = craters.path.parent / "crops" / "0.png"
    found = find_lookalikes(craters, file, 3, diversity=0)
    assert {one.id for one in found.found} == EVEN
    assert found.crater is not None and not found.assumed


def test_conditions_hold_for_the_answers(craters: Collection) -> None:
    found = find_lookalikes(craters, "crater_0", 9, where=["diameter>55"])
    assert {one.id for one in found.found} == {f"crater_{k}" for k in range(3, 8)}  # 60 to 100 km


def test_by_vectors_the_collection_is_compared_as_before(craters: Collection) -> None:
    found = find_lookalikes(craters, "crater_0", 3, by="vectors")
    assert (found.by, len(found.found)) == ("vectors", 3)
    assert all(one.crater is None for one in found.found)


def test_forms_are_kept_and_changed_files_are_skipped(craters: Collection, tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    find_lookalikes(craters, "crater_0", 3, progress=lambda done, total: calls.append((done, total)))
    find_lookalikes(craters, "crater_2", 3, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(9, 9)]
    (next((tmp_path / "cache/resight/forms").iterdir())).write_bytes(b"damaged")
    (craters.path.parent / "crops" / "7.png").rename(craters.path.parent / "gone.png")
    found = find_lookalikes(craters, "crater_0", 9)
    (craters.path.parent / "gone.png").rename(craters.path.parent / "crops" / "7.png")
    assert (found.compared, len(found.skipped)) == (6, 1)


def test_photographs_are_compared_by_vectors_and_have_no_form(tmp_path: Path) -> None:
    (plain,) = write_craters(tmp_path / "crops", 1)[:1]
    photos = open_collection(tmp_path / "photos.resight", "tokens")
    photos.add(tmp_path / "crops")
    assert find_lookalikes(photos, plain.path).by == "vectors"
    with pytest.raises(InputError, match="by form"):
        find_lookalikes(photos, plain.path, by="form")


def test_a_photograph_unknown_to_a_few_craters_and_other_photographs_is_none(tmp_path: Path) -> None:
    craters = write_craters(tmp_path / "crops", 1)
    mixed = open_collection(tmp_path / "mixed.resight", "tokens")
    mixed.add([craters[0], *(replace(one, id=f"photo {one.id}", attributes={}) for one in craters)])
    unknown = write_craters(tmp_path / "others", 3)[2].path
    assert find_lookalikes(mixed, unknown).by == "vectors"
    assert find_lookalikes(mixed, craters[0].id).by == "form"


def test_the_command_writes_a_contact_sheet(craters: Collection, tmp_path: Path) -> None:
    page = tmp_path / "sheet.html"
    ran = run("lookalikes", craters.path, "crater_0", "-k", "3", "--html", page, "--json")
    assert (ran.answer["by"], len(ran.answer["analogues"])) == ("form", 3)
    text = page.read_text()
    assert text.count('<circle class="edge"') == 4  # the query and three answers
    assert "2 images of the same crater, or of the same ground, are left out" in text
    assert "http:" not in text
