"""Plans of downloads: sizes worked out by hand, what is there already, and what people must do."""

import json
from pathlib import Path

import pytest

from resight.data import download
from resight.data.download import DONE, FOLDER, Plan, Step, check_plan, list_manual, make_plan
from resight.data.download_catalogue import Entry, Part, RemoteFile
from resight.errors import InputError, StorageError

TRUTH = RemoteFile("http://h/t.pkl", "t/")
ARCHIVES = RemoteFile("http://h/{number}.tar", "m/", unpack=True, numbers=(1, 3), bytes=1000)
FORM = Part("form", "", optional=True, reason="a form", manual=("put it to ROOT/form",))
ENTRY = Entry(
    "some", "here", "free", ("t/t.pkl",), manual=("read ROOT",), parts=(Part("all", "", (TRUTH, ARCHIVES)), FORM)
)


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Addresses whose size was asked for; it is 70 bytes."""
    urls: list[str] = []

    def ask(url: str, _: object) -> int:
        urls.append(url)
        return 70

    monkeypatch.setattr(download, "ask_size", ask)
    return urls


def test_a_plan_adds_sizes_up_and_asks_for_unknown_ones(tmp_path: Path, asked: list[str]) -> None:
    plan = make_plan("some", tmp_path, ENTRY)
    assert [step.file.name for step in plan.missing] == ["t.pkl", "1.tar", "2.tar", "3.tar"]
    assert asked == ["http://h/t.pkl"]
    assert (plan.bytes, plan.unknown) == (3070, 0)
    assert plan.disk_bytes == 4070  # an archive of 1,000 bytes lies beside its files while it unpacks
    assert list(tmp_path.iterdir()) == []


def test_sizes_that_no_server_says_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "ask_size", lambda *_: None)
    plan = make_plan("some", tmp_path, ENTRY)
    assert (plan.bytes, plan.unknown, plan.disk_bytes) == (3000, 1, 4000)


def test_few_sizes_are_asked_for(tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "ASKED", 2)
    many = RemoteFile("http://h/{number}.txt", "t/", numbers=(0, 4))
    plan = make_plan("some", tmp_path, Entry("some", "here", "free", (), parts=(Part("all", "", (many,)),)))
    assert asked == ["http://h/0.txt", "http://h/1.txt"]
    assert (plan.bytes, plan.unknown) == (140, 3)


def test_what_is_there_already_is_left_out(tmp_path: Path, asked: list[str]) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / DONE).write_text(json.dumps({"http://h/t.pkl": {}, "http://h/2.tar": {}}))
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "t.pkl").touch()
    names = [step.file.name for step in make_plan("some", tmp_path, ENTRY).missing]
    assert names == ["1.tar", "2.tar", "3.tar"]  # nothing is in m/: its files were deleted
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "a.jpg").touch()
    assert [step.file.name for step in make_plan("some", tmp_path, ENTRY).missing] == ["1.tar", "3.tar"]
    assert asked == []
    (tmp_path / FOLDER / DONE).write_text("[damaged")
    assert len(make_plan("some", tmp_path, ENTRY).missing) == 3  # a file without a known checksum counts as it is


def test_a_file_with_another_checksum_is_missing(tmp_path: Path) -> None:
    file = RemoteFile("http://h/t.pkl", "t.pkl", checksum="md5:d41d8cd98f00b204e9800998ecf8427e")  # of an empty file
    entry = Entry("some", "here", "free", (), parts=(Part("all", "", (file,)),))
    (tmp_path / "t.pkl").write_bytes(b"other")
    assert make_plan("some", tmp_path, entry).missing
    (tmp_path / "t.pkl").write_bytes(b"")
    assert not make_plan("some", tmp_path, entry).missing


def test_a_plan_for_a_disk_that_is_too_small_is_refused(tmp_path: Path) -> None:
    check_plan(Plan("some", tmp_path, ENTRY, (Step(FORM, TRUTH, 1, False),)))
    with pytest.raises(StorageError, match="too small for the download of some"):
        check_plan(Plan("some", tmp_path, ENTRY, (Step(FORM, TRUTH, 10**18, False),)))


def test_parts_by_hand_are_refused_with_their_steps(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="form cannot be downloaded by a command") as refused:
        make_plan("some", tmp_path, ENTRY, ["form"])
    assert refused.value.actual == "a form"
    assert f"put it to {tmp_path}/form" in refused.value.fix
    assert "t/t.pkl" in refused.value.fix and f"resight data check some {tmp_path}" in refused.value.fix
    assert list_manual(ENTRY, "here") == ["read here", "put it to here/form"]
