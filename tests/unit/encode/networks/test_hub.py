"""The hub is played by small functions that fail as the real one does; no test touches the network."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

pytest.importorskip("huggingface_hub")

from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)

from resight.encode.networks import hub
from resight.errors import MissingWeights, RecipeError

ANSWER: Any = SimpleNamespace(headers={}, request=None)  # of a server


class Hub:
    """Answers every file with what stands for it here, an exception or a path."""

    def __init__(self, **files: object) -> None:
        self.files = files
        self.asked: list[str] = []
        self.revisions: list[tuple[str, str | None]] = []
        self.heads = 0

    def download(self, repository: str, name: str, revision: str | None = None) -> str:
        self.asked.append(name)
        self.revisions.append((repository, revision))
        answer = self.files.get(name.partition(".")[0], EntryNotFoundError("no such file"))
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    def head(self, _address: str, timeout: float) -> None:
        assert timeout <= 10
        self.heads += 1
        if "reached" in self.files and isinstance(self.files["reached"], Exception):
            raise self.files["reached"]


@pytest.fixture(autouse=True)
def forget_whether_it_was_reached() -> Iterator[None]:
    hub.find_obstacle.cache_clear()
    yield
    hub.find_obstacle.cache_clear()


def play(monkeypatch: pytest.MonkeyPatch, **files: object) -> Hub:
    played = Hub(**files)
    monkeypatch.setattr(hub, "hf_hub_download", played.download)
    monkeypatch.setattr(hub, "try_to_load_from_cache", lambda *_, **__: None)
    monkeypatch.setattr(hub, "get_session", lambda: played)
    return played


def test_the_first_file_that_there_is_is_fetched(monkeypatch: pytest.MonkeyPatch):
    played = play(monkeypatch, second="here/second.bin")
    assert hub.fetch("a/b", ["first.safetensors", "second.bin"]) == Path("here/second.bin")
    assert played.asked == ["first.safetensors", "second.bin"]


def test_what_is_in_the_cache_is_not_asked_for(monkeypatch: pytest.MonkeyPatch):
    played = play(monkeypatch)
    monkeypatch.setattr(
        hub, "try_to_load_from_cache", lambda _repository, name: "cache/two" if name == "two" else object()
    )
    assert hub.fetch("a/b", ["one", "two"]) == Path("cache/two")
    assert played.asked == [] and played.heads == 0


def test_a_file_that_need_not_be_there_is_told_from_a_failure(monkeypatch: pytest.MonkeyPatch):
    play(monkeypatch, there="here/there.json", lost=LocalEntryNotFoundError("lost on the way"))
    assert hub.fetch_optional("a/b", "there.json") == Path("here/there.json")
    assert hub.fetch_optional("a/b", "absent.json") is None
    with pytest.raises(MissingWeights, match="lost on the way"):
        hub.fetch_optional("a/b", "lost.json")


def test_the_cache_remembers_what_is_not_there(monkeypatch: pytest.MonkeyPatch):
    played = play(monkeypatch, reached=ConnectionError("no network"))
    monkeypatch.setattr(hub, "try_to_load_from_cache", lambda _repository, _name: object())
    assert hub.fetch_optional("a/b", "absent.json") is None
    assert played.heads == 0


def test_a_hub_out_of_reach_is_tried_once_for_all_networks(monkeypatch: pytest.MonkeyPatch):
    played = play(monkeypatch, reached=ConnectionError("Name or service not known"))
    for name in ("a/b", "c/d", "e/f"):
        with pytest.raises(MissingWeights, match="Name or service not known") as caught:
            hub.fetch(name, ["model.safetensors"])
        assert name in caught.value.problem
        assert "`weights`" in caught.value.fix and "efficientnet_lite" in caught.value.fix
    assert played.heads == 1 and played.asked == []


def test_offline_mode_is_named(monkeypatch: pytest.MonkeyPatch):
    play(monkeypatch, reached=OfflineModeIsEnabled("offline mode is enabled (HF_HUB_OFFLINE)"))
    with pytest.raises(MissingWeights, match="HF_HUB_OFFLINE"):
        hub.fetch("a/b", ["model.safetensors"])


@pytest.mark.parametrize(
    ("failure", "actual", "fix"),
    [
        (GatedRepoError("403", response=ANSWER), "consent", "a/b, then `hf auth login`"),
        (RepositoryNotFoundError("401", response=ANSWER), "no such repository", "check the spelling"),
        (LocalEntryNotFoundError("lost on the way"), "lost on the way", "try again"),
        (OSError("No space left on device\nat …"), "No space left on device", "`weights`"),
        (EntryNotFoundError("404"), "none of model.safetensors", "`weights`"),
    ],
)
def test_every_failure_says_what_would_work(monkeypatch: pytest.MonkeyPatch, failure: Exception, actual: str, fix: str):
    play(monkeypatch, model=failure)
    with pytest.raises(MissingWeights) as caught:
        hub.fetch("a/b", ["model.safetensors"])
    assert actual in caught.value.actual and fix in caught.value.fix
    assert "\n" not in caught.value.actual


def test_a_name_that_no_repository_can_have_is_in_no_cache():
    assert hub.find("a b/c d/e", ["model.safetensors"]) is None


def test_errors_of_resight_pass_through(monkeypatch: pytest.MonkeyPatch):
    play(monkeypatch)

    def fail() -> NoReturn:
        raise RecipeError("its own")

    with pytest.raises(RecipeError, match="its own"), hub.explain_failure("a/b"):
        fail()


def test_a_recipe_may_pin_a_revision(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    played = play(monkeypatch, config=tmp_path)
    assert hub.fetch(f"owner/name@{'0' * 40}", ["config.json"]) == tmp_path
    assert hub.fetch("owner/name", ["config.json"]) == tmp_path
    assert played.revisions == [("owner/name", "0" * 40), ("owner/name", None)]
