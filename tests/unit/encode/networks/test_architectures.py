"""The table of architectures against published sizes. Networks are made without memory, on torch's meta device."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from resight.encode.networks.architectures import (  # noqa: E402
    FAMILIES,
    Architecture,
    describe,
    read_table,
)
from resight.encode.networks.pretrained import make_module  # noqa: E402
from resight.encode.networks.transformers_network import describe_input, find_blocks  # noqa: E402

# Millions of parameters without classifiers, as published; dimensions, tokens (or rows of a map), blocks or stages.
PUBLISHED = {
    "facebook/dino-vits16": (21.7, 384, 197, 12),
    "facebook/dino-vits8": (21.7, 384, 785, 12),
    "facebook/dino-vitb16": (85.8, 768, 197, 12),
    "facebook/dino-vitb8": (85.8, 768, 785, 12),
    "facebook/dinov2-small": (22.1, 384, 257, 12),
    "facebook/dinov2-base": (86.6, 768, 257, 12),
    "facebook/dinov2-large": (304.4, 1024, 257, 24),
    "facebook/dinov2-giant": (1136.5, 1536, 257, 40),
    "facebook/dinov2-with-registers-small": (22.1, 384, 261, 12),
    "facebook/dinov2-with-registers-base": (86.6, 768, 261, 12),
    "facebook/dinov2-with-registers-large": (304.4, 1024, 261, 24),
    "facebook/dinov2-with-registers-giant": (1136.5, 1536, 261, 40),
    "facebook/dinov3-vits16-pretrain-lvd1689m": (21.6, 384, 201, 12),
    "facebook/dinov3-vits16plus-pretrain-lvd1689m": (28.7, 384, 201, 12),
    "facebook/dinov3-vitb16-pretrain-lvd1689m": (85.7, 768, 201, 12),
    "facebook/dinov3-vitl16-pretrain-lvd1689m": (303.1, 1024, 201, 24),
    "facebook/dinov3-vith16plus-pretrain-lvd1689m": (840.6, 1280, 201, 32),
    "facebook/dinov3-vit7b16-pretrain-lvd1689m": (6716, 4096, 201, 40),
    "facebook/dinov3-vitl16-pretrain-sat493m": (303.1, 1024, 201, 24),
    "facebook/dinov3-vit7b16-pretrain-sat493m": (6716, 4096, 201, 40),
    "facebook/dinov3-convnext-tiny-pretrain-lvd1689m": (27.8, 768, 50, 4),
    "facebook/dinov3-convnext-small-pretrain-lvd1689m": (49.5, 768, 50, 4),
    "facebook/dinov3-convnext-base-pretrain-lvd1689m": (87.6, 1024, 50, 4),
    "facebook/dinov3-convnext-large-pretrain-lvd1689m": (196.2, 1536, 50, 4),
    "openai/clip-vit-base-patch32": (87.5, 768, 50, 12),
    "openai/clip-vit-base-patch16": (85.8, 768, 197, 12),
    "openai/clip-vit-large-patch14": (303.2, 1024, 257, 24),
    "openai/clip-vit-large-patch14-336": (303.5, 1024, 577, 24),
    "geolocal/StreetCLIP": (303.5, 1024, 577, 24),
    "laion/CLIP-ViT-B-32-laion2B-s34B-b79K": (87.5, 768, 50, 12),
    "google/siglip-base-patch16-224": (92.9, 768, 196, 12),
    "google/siglip-large-patch16-256": (316.0, 1024, 256, 24),
    "google/siglip-large-patch16-384": (316.3, 1024, 576, 24),
    "google/siglip-so400m-patch14-384": (428.2, 1152, 729, 27),
    "facebook/vit-mae-base": (85.8, 768, 197, 12),
    "google/vit-base-patch16-224": (86.4, 768, 197, 12),
    "google/vit-base-patch16-224-in21k": (86.4, 768, 197, 12),
    "facebook/deit-tiny-patch16-224": (5.5, 192, 197, 12),
    "facebook/deit-small-patch16-224": (21.7, 384, 197, 12),
    "facebook/deit-base-patch16-224": (85.8, 768, 197, 12),
    "facebook/deit-tiny-distilled-patch16-224": (5.5, 192, 198, 12),
    "facebook/deit-small-distilled-patch16-224": (21.7, 384, 198, 12),
    "facebook/deit-base-distilled-patch16-224": (85.8, 768, 198, 12),
    "microsoft/resnet-18": (11.2, 512, 7, 4),
    "microsoft/resnet-50": (23.5, 2048, 7, 4),
    "microsoft/resnet-101": (42.5, 2048, 7, 4),
    "facebook/convnext-tiny-224": (27.8, 768, 7, 4),
    "facebook/convnext-base-224": (87.6, 1024, 7, 4),
    "facebook/convnextv2-tiny-1k-224": (27.9, 768, 7, 4),
}


def test_every_architecture_of_the_table_is_checked():
    assert set(read_table()) == set(PUBLISHED)


@pytest.mark.parametrize("model", PUBLISHED)
def test_an_architecture_has_its_published_size(model: str):
    millions, dimensions, tokens, blocks = PUBLISHED[model]
    architecture = describe(model)
    with torch.device("meta"):
        module = make_module(architecture).eval()
    assert sum(part.numel() for part in module.parameters()) == pytest.approx(1e6 * millions, rel=0.02)
    assert len(find_blocks(module)) == blocks
    assert count_tokens(architecture, module) == ((dimensions, tokens, tokens) if tokens == 7 else (tokens, dimensions))


def count_tokens(architecture: Architecture, module: torch.nn.Module) -> tuple[int, ...]:
    shown = describe_input(module, architecture)
    planes = torch.empty(1, 3, shown.size, shown.size, device="meta")
    with torch.inference_mode():
        found = module(pixel_values=planes, **FAMILIES[architecture.family].arguments(planes, shown.cell))
    return tuple(found.last_hidden_state.shape[1:])


def test_clip_has_the_activation_of_its_makers():
    acts = {model: describe(model).config["hidden_act"] for model in PUBLISHED if describe(model).family == "clip"}
    assert {model for model, act in acts.items() if act == "gelu"} == {"laion/CLIP-ViT-B-32-laion2B-s34B-b79K"}
    assert set(acts.values()) == {"gelu", "quick_gelu"}


def test_satellite_weights_are_prepared_with_their_own_mean():
    assert describe("facebook/dinov3-vitl16-pretrain-sat493m").preparation.mean == (0.430, 0.411, 0.296)
    assert describe("facebook/dinov3-vitl16-pretrain-lvd1689m").preparation.mean == (0.485, 0.456, 0.406)


def test_what_needs_consent_is_said():
    assert {model for model in PUBLISHED if describe(model).gated} == {
        model for model in PUBLISHED if "dinov3" in model
    }
    assert all(describe(model).licence for model in PUBLISHED)


def test_patches_that_do_not_tile_the_makers_size_are_allowed():
    with torch.device("meta"):
        shown = {
            model: describe_input(make_module(describe(model)), describe(model))
            for model in ("google/siglip-so400m-patch14-384", "google/siglip-base-patch16-224")
        }
    assert [(one.size, one.cell, one.whole) for one in shown.values()] == [(384, 14, False), (224, 16, True)]


def test_the_catalogue_says_the_same_of_a_licence():
    from resight.encode.named_networks import catalogue

    for model in catalogue().values():
        if model.encoder.name == "transformers":
            known = read_table()[str(model.encoder.settings["model"])]
            assert (known.licence, known.gated) == (model.licence, model.gated)
