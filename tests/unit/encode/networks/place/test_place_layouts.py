"""Checkpoints named and shaped as the authors' code has them: every tensor finds its place, and sizes are read off."""

import pytest

torch = pytest.importorskip("torch")
place = pytest.importorskip("resight.encode.backbones.place")

from support import published_states as published  # noqa: E402

from resight.encode.networks.place.place_design import PUBLISHED, choose_design  # noqa: E402
from resight.encode.networks.place.place_layouts import load_network, read_design, translate  # noqa: E402
from resight.encode.networks.place.place_network import make_network  # noqa: E402
from resight.errors import MissingWeights, RecipeError  # noqa: E402

R50, R101 = (3, 4, 6, 3), (3, 4, 23, 3)
FILES = {  # that the authors publish, in full size → the design that resight must read off
    "sscd_disc_mixup.torchvision": ("sscd", "resnet50", published.sscd_torchvision(512, R50, True)),
    "sscd_disc_mixup.classy": ("sscd", "resnet50", published.sscd_classy("{block}._module", 512, R50, 1)),
    "sscd_disc_large.classy": ("sscd", "resnext101_32x4d", published.sscd_classy()),
    "ResNet50_2048_cosplace": ("cosplace", "resnet50", published.cosplace(2048, R50, True)),
    "ResNet18_512_cosplace": ("cosplace", "resnet18", published.cosplace()),
    "VGG16_512_cosplace": ("cosplace", "vgg16", published.cosplace_vgg()),
    "ResNet101_128_eigenplaces": ("eigenplaces", "resnet101", published.cosplace(128, R101, True)),
    "resnet50_MixVPR_4096": ("mixvpr", "resnet50", published.mixvpr()),
    "resnet50_MixVPR_128": ("mixvpr", "resnet50", published.mixvpr(64, 2)),
    "resnet50_16384": ("boq", "resnet50", published.boq_resnet()),
    "dinov2_12288": ("boq", "dinov2", published.boq_dino()),
    "dino_salad": ("salad", "dinov2", published.salad()),
    "megaloc v1.0": ("megaloc", "dinov2", published.megaloc()),
    "megaloc on the hub": ("megaloc", "dinov2", published.megaloc(prefix="backbone.")),
    "delg": ("delg", "resnet50", published.delg()),
    "CVNet R101": ("superglobal", "resnet101", published.superglobal(2048, R101)),
}
DIMENSIONS = {
    "sscd_disc_large.classy": 1024,
    "ResNet18_512_cosplace": 512,
    "VGG16_512_cosplace": 512,
    "ResNet101_128_eigenplaces": 128,
    "resnet50_MixVPR_128": 128,
    "resnet50_16384": 16384,
}


@pytest.mark.parametrize("name", FILES)
def test_a_published_file_has_the_tensors_of_the_network_that_it_tells(name):
    model, backbone, shapes = FILES[name]
    state = translate(model, {name: torch.empty(shape, device="meta") for name, shape in shapes.items()})
    design = read_design(model, state, name)
    assert design.backbone == backbone
    assert design.dimensions == DIMENSIONS.get(name, PUBLISHED[model].dimensions)
    assert name in DIMENSIONS or backbone == "resnet101" or design == PUBLISHED[model]
    with torch.device("meta"):
        network = make_network(design)
    assert differ(network.state_dict(), state) <= {"head.pool.p"}  # one number, in an array or by itself


def differ(own, state):
    names = {name for name in {**own, **state} if not name.endswith("num_batches_tracked")}
    return {name for name in names if name not in own or name not in state or own[name].shape != state[name].shape}


SMALL = {
    "sscd": published.sscd_torchvision(24),
    "cosplace": published.cosplace(24),
    "mixvpr": published.mixvpr(6, 2, 2, 4, (2, 2, 2), False),
    "boq": published.boq_dino(64, 2, 3, 64, 5, 2, 3),
    "salad": published.salad(64, 2, 3, 4, 6, 5, 16),
    "megaloc": published.megaloc(24, 6, 4, 5, "backbone.", width=64, depth=2, side=3, hidden=16),
    "delg": published.delg(24, 16, (2, 2, 2, 2), False),
    "superglobal": published.superglobal(24, (2, 2, 2, 2), False),
}


@pytest.mark.parametrize("model", SMALL)
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_small_file_in_the_authors_layout_fills_every_tensor(model, wrapped, tmp_path):
    state = published.draw(SMALL[model])
    kept = {f"module.{name}": value for name, value in state.items()} if wrapped else state
    torch.save({"model_state": kept, "epoch": 3} if wrapped else kept, tmp_path / "own.ckpt")
    loaded = load_network(model, tmp_path / "own.ckpt").state_dict()
    translated = translate(model, state)
    for name, value in loaded.items():
        assert torch.equal(value, translated[name].reshape(value.shape)), name
    # Nothing of the file is lost: as many numbers, but for what training alone uses.
    spare = [name for name in state if name.startswith(("desc_cls", "conv2ds", "cv_learner")) or "mask_token" in name]
    spare += ["encoder_q.head.pool.p"] if model == "superglobal" else []
    total = sum(value.numel() for name, value in state.items() if name not in spare)
    assert sum(value.numel() for value in loaded.values()) == total


def test_networks_that_take_blue_first_are_turned_round(tmp_path):
    state = published.draw(SMALL["delg"])
    torch.save(state, tmp_path / "delg.pth")
    first = load_network("delg", tmp_path / "delg.pth").state_dict()["trunk.model.conv1.weight"]
    assert torch.equal(first[:, 0], state["globalmodel.stem.conv.weight"][:, 2])


def test_our_own_names_are_read_back(tmp_path):
    network = make_network(choose_design("cosplace", "resnet18"))
    torch.save(network.state_dict(), tmp_path / "own.pth")
    assert load_network("cosplace", tmp_path / "own.pth").design == network.design


def test_the_file_of_another_network_is_refused_with_its_names(tmp_path):
    torch.save(published.draw(SMALL["cosplace"]), tmp_path / "cosplace.pth")
    with pytest.raises(RecipeError, match="not those of salad") as refused:
        load_network("salad", tmp_path / "cosplace.pth")
    assert "trunk.model.0.weight" in refused.value.actual
    with pytest.raises(RecipeError, match="not those of sscd"):
        load_network("sscd", tmp_path / "cosplace.pth")


def test_a_truncated_file_names_what_is_missing(tmp_path):
    state = published.draw(SMALL["megaloc"])
    del state["aggregator.agg.dust_bin"]
    torch.save(state, tmp_path / "megaloc.torch")
    with pytest.raises(RecipeError, match="do not fit") as refused:
        load_network("megaloc", tmp_path / "megaloc.torch")
    assert "head.dustbin" in refused.value.actual


def test_a_file_with_another_backbone_than_asked_is_refused(tmp_path):
    torch.save(published.draw(SMALL["cosplace"]), tmp_path / "own.pth")
    with pytest.raises(RecipeError, match="another backbone"):
        place.build(place.Config(model="cosplace", weights=tmp_path / "own.pth", backbone="resnet50"))


def test_weights_are_found_where_torch_hub_puts_them(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    config = place.Config(model="eigenplaces", release="ResNet18_256_eigenplaces.pth")
    with pytest.raises(MissingWeights, match="not on this machine") as refused:
        place.find_weights(config)
    assert "releases/download/v1.0/ResNet18_256_eigenplaces.pth" in refused.value.fix
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    torch.save(published.draw(published.cosplace(256)), folder / "ResNet18_256_eigenplaces.pth")
    assert place.find_weights(config) == folder / "ResNet18_256_eigenplaces.pth"
    assert place.load(config).design.dimensions == 256


def test_offline_mode_forbids_downloads(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(torch.hub, "download_url_to_file", lambda *_, **__: pytest.fail("it asked for the file"))
    with pytest.raises(MissingWeights, match="not on this machine") as refused:
        place.load(place.Config(model="cosplace"))
    assert "HF_HUB_OFFLINE" in refused.value.actual
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["../x.pth", "a/b.pth", "", "x y", ".."])
def test_a_release_is_a_bare_name(name):
    with pytest.raises(RecipeError, match="no name of a file"):
        place.Config(model="cosplace", release=name)


def test_a_backbone_that_the_authors_do_not_have_is_refused():
    with pytest.raises(RecipeError, match="does not run on"):
        place.Config(model="salad", backbone="resnet50")
