import pytest

from resight import plugins
from resight.encode import catalogue
from resight.errors import MissingExtra


def test_every_backbone_is_listed_by_name():
    assert [entry.name for entry in catalogue.list_encoders()] == plugins.names("resight.encode.backbones")


def test_sift_is_always_ready():
    (sift,) = [entry for entry in catalogue.list_encoders() if entry.name == "sift"]
    assert sift.ready and sift.missing == ""
    assert (sift.family, sift.dimensions, sift.rows) == ("local features", 128, "key point")


def test_an_encoder_that_cannot_run_here_is_listed_with_what_it_lacks(monkeypatch: pytest.MonkeyPatch):
    def find(package: str, name: str) -> None:  # noqa: ARG001 - as the real one
        raise MissingExtra(f"{name} needs torch")

    monkeypatch.setattr(plugins, "find", find)
    entries = catalogue.list_encoders()
    assert entries
    assert all(not entry.ready and entry.missing == f"{entry.name} needs torch" for entry in entries)
