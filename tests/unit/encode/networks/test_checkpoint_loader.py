"""Checkpoints as training leaves them, on a network of two layers."""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import save_file  # noqa: E402

from resight.encode.networks.checkpoint_loader import load_weights, read, unwrap  # noqa: E402
from resight.errors import RecipeError  # noqa: E402


def make_network() -> Any:
    blocks = torch.nn.ModuleList([torch.nn.Linear(2, 2, bias=False), torch.nn.BatchNorm1d(2)])
    return torch.nn.ModuleDict({"blocks": blocks, "norm": torch.nn.LayerNorm(2)})


def make_state(value: float = 3.0) -> dict[str, Any]:
    return {name: torch.full_like(tensor, value) for name, tensor in make_network().state_dict().items()}


def add_prefix(state: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {prefix + name: tensor for name, tensor in state.items()}


def save(found: Any, folder: Path, name: str = "own.pth") -> Path:
    path = folder / name
    if path.suffix == ".safetensors":
        save_file(found, path)
    else:
        torch.save(found, path)
    return path


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (make_state(), 3),
        ({"state_dict": make_state(), "epoch": 7, "optimizer": {"state": {0: torch.zeros(1)}}}, 3),
        (
            {"teacher": add_prefix(make_state(4), "module.backbone."), "student": add_prefix(make_state(5), "module.")},
            4,
        ),
        ({"model": make_state(5), "model_ema": make_state(4)}, 4),
        ({"model": {}, "state_dict": make_state(6)}, 6),
        (add_prefix(make_state(), "a.name.nobody.knows."), 3),
        (add_prefix(make_state(5), "student.backbone.") | add_prefix(make_state(4), "teacher.backbone."), 4),
        (add_prefix(make_state(5), "module.encoder_q.") | add_prefix(make_state(4), "module.encoder_k."), 5),
    ],
)
def test_what_training_wraps_around_the_weights_comes_off(found: Any, value: float, tmp_path: Path):
    network = make_network()
    load_weights(network, save(found, tmp_path))
    assert float(network["blocks"][0].weight.detach().mean()) == value
    assert float(network["norm"].bias.detach().mean()) == value
    assert float(network["blocks"][1].running_var.mean()) == value


def test_safetensors_and_a_file_without_counters_load(tmp_path: Path):
    state = {name: tensor for name, tensor in make_state().items() if not name.endswith("num_batches_tracked")}
    network = make_network()
    load_weights(network, save(state, tmp_path, "own.safetensors"))
    assert float(network["norm"].weight.detach().sum()) == 6


def test_spare_keys_are_left_out_wherever_they_stand(tmp_path: Path):
    heads = {"module.head.mlp.0.weight": torch.zeros(3), "module.backbone.head.bias": torch.zeros(3)}
    path = save({"teacher": add_prefix(make_state(), "module.backbone.") | heads}, tmp_path)
    load_weights(make_network(), path, spare=("head",))
    with pytest.raises(RecipeError, match=r"not in the network .*head\.mlp\.0\.weight 3"):
        load_weights(make_network(), path)


def test_optional_keys_may_be_missing_and_stay_as_they_are(tmp_path: Path):
    state = {name: tensor for name, tensor in make_state().items() if not name.startswith("norm")}
    network = make_network()
    load_weights(network, save(state, tmp_path), optional=("norm",))
    assert network["norm"].weight.tolist() == [1, 1]
    with pytest.raises(RecipeError, match=r"keys norm\.weight 2, norm\.bias 2"):
        load_weights(make_network(), save(state, tmp_path))


def test_a_wrong_shape_is_named_with_both_shapes_and_nothing_is_loaded(tmp_path: Path):
    state = make_state() | {"blocks.0.weight": torch.zeros(2, 5)}
    network = make_network()
    with pytest.raises(RecipeError) as caught:
        load_weights(network, save(state, tmp_path))
    assert "blocks.0.weight 2×2" in caught.value.expected
    assert "of another shape blocks.0.weight 2×5" in caught.value.actual
    assert network["norm"].weight.tolist() == [1, 1]


def test_the_state_can_be_adapted_before_it_is_compared(tmp_path: Path):
    state = make_state() | {"norm.bias": torch.ones(4)}
    network = make_network()
    load_weights(network, save(state, tmp_path), adapt=lambda own: {**own, "norm.bias": own["norm.bias"][:2]})
    assert network["norm"].bias.tolist() == [1, 1]


def test_names_of_the_other_library_are_recognised(tmp_path: Path):
    path = save({"vit.encoder.layer.0.attention.query.weight": torch.zeros(1)}, tmp_path)
    with pytest.raises(RecipeError) as caught:
        load_weights(make_network(), path)
    assert "use the encoder 'transformers'" in caught.value.fix


def test_a_file_that_would_run_code_is_refused_and_runs_none(tmp_path: Path):
    class Trap:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "sprung",)

    path = tmp_path / "own.pth"
    path.write_bytes(pickle.dumps({"state_dict": Trap()}))
    with pytest.raises(RecipeError, match="cannot read the weights"):
        load_weights(make_network(), path)
    torch.save({"state_dict": Trap()}, path)
    with pytest.raises(RecipeError, match="holds only tensors"):
        load_weights(make_network(), path)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("name", ["own.pth", "own.safetensors"])
def test_a_damaged_or_absent_file_is_refused(name: str, tmp_path: Path):
    whole = save(make_state(), tmp_path, name).read_bytes()
    for number, content in enumerate((b"", b"junk", whole[: len(whole) // 2], whole[:50], bytes(range(256)) * 9)):
        path = tmp_path / f"{number}{name}"
        path.write_bytes(content)
        with pytest.raises(RecipeError, match="cannot read the weights"):
            load_weights(make_network(), path)
    with pytest.raises(RecipeError, match="there are no weights"):
        load_weights(make_network(), tmp_path / "absent" / name)
    with pytest.raises(RecipeError, match="cannot read the weights"):
        load_weights(make_network(), tmp_path)


@pytest.mark.parametrize(
    ("found", "reason"), [([1], "holds no state dict"), ({"epoch": 3}, "keys epoch"), ({}, "nothing")]
)
def test_a_file_without_tensors_is_refused(found: Any, reason: str, tmp_path: Path):
    with pytest.raises(RecipeError, match=reason):
        load_weights(make_network(), save(found, tmp_path))


def test_what_a_training_script_saves_beside_the_weights_does_no_harm(tmp_path: Path):
    import argparse

    path = tmp_path / "dino.pth"
    saved = {"teacher": {"module.backbone.weight": torch.ones(2)}, "args": argparse.Namespace(lr=0.1), "epoch": 3}
    torch.save(saved, path)
    (tensor,) = unwrap(read(path), path).values()
    assert tensor.tolist() == [1, 1]


def test_a_file_that_is_not_there_is_told_from_a_damaged_one(tmp_path: Path):
    with pytest.raises(RecipeError, match="there are no weights"):
        read(tmp_path / "gone.safetensors")
    (tmp_path / "broken.pth").write_text("hello")
    with pytest.raises(RecipeError, match=r"actual: \w+Error"):
        read(tmp_path / "broken.pth")


class Scripted(torch.nn.Module):  # type: ignore[misc]
    """A network that leaves a trace when its program runs."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.BatchNorm1d(2))
        self.norm = torch.nn.LayerNorm(2)
        self.sizes = [1, 2]

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.norm(self.blocks(values))


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
@pytest.mark.parametrize("make", ["script", "trace"])
def test_the_tensors_of_a_torchscript_archive_are_read_without_its_program(
    make: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    network = Scripted().eval()
    network.load_state_dict(make_state(5.0))
    script = torch.jit.script(network) if make == "script" else torch.jit.trace(network, torch.zeros(3, 2))
    script.save(str(tmp_path / "own.pt"))
    monkeypatch.setattr(torch.jit, "load", None)
    loaded = make_network()
    load_weights(loaded, tmp_path / "own.pt")
    for name, tensor in loaded.state_dict().items():
        assert name.endswith("num_batches_tracked") or (tensor == 5).all(), name


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_a_frozen_script_has_no_names_and_says_what_to_use(tmp_path: Path):
    torch.jit.freeze(torch.jit.script(Scripted().eval())).save(str(tmp_path / "own.pt"))
    with pytest.raises(RecipeError, match="TorchScript") as refused:
        load_weights(make_network(), tmp_path / "own.pt")
    assert "frozen" in refused.value.actual and "plain weights" in refused.value.fix
