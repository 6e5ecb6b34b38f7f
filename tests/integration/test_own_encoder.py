"""Encoders and vectors of one's own: given directly, found again, and kept apart from others."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import resight
from resight.encode.backbones.own import OwnEncoder
from resight.errors import BoxError, CollectionError, InputError, MissingExtra, RecipeError, SpaceMismatch
from resight.recipe import load

SIDE = 8


def small(images: list[Image.Image]) -> np.ndarray:
    """One vector per image: its pixels at 8 × 8."""
    return np.stack([np.asarray(image.resize((SIDE, SIDE)), np.float32).ravel() - 128 for image in images])


def cells(images: list[Image.Image]) -> np.ndarray:
    """A token of 12 numbers per cell of a grid of 6 × 6, and a CLS token before them."""
    tokens = []
    for image in images:
        pixels = np.asarray(image.resize((12, 12)), np.float32) - 128
        patches = pixels.reshape(6, 2, 6, 2, 3).transpose(0, 2, 1, 3, 4).reshape(36, 12)
        tokens.append(np.concatenate([patches.mean(axis=0, keepdims=True), patches]))
    return np.stack(tokens)


def mend_torchvision() -> None:
    """timm and transformers import it, and with some builds of torch it lacks an operator."""
    pytest.importorskip("torch")
    from resight.encode.networks.torchvision_compat import declare_missing

    declare_missing()


def wrap(function: Callable[..., Any] = small, version: str = "1") -> OwnEncoder:
    return resight.wrap_encoder(function, name=function.__name__, version=version)


@pytest.mark.parametrize("function", [small, cells])
def test_a_function_encodes_and_finds_and_is_given_again(function: Any, scenes: Path, tmp_path: Path) -> None:
    photos = resight.open(tmp_path / "c", encoder=wrap(function))
    photos.add(scenes)
    assert photos.search(scenes / "scene_05.jpg", k=1)[0].id == "scene_05.jpg"
    again = resight.open(tmp_path / "c", encoder=wrap(function))
    assert again.search(scenes / "scene_03.jpg", k=1)[0].id == "scene_03.jpg"
    bare = resight.open(tmp_path / "c")
    assert len(bare) == 12
    with pytest.raises(MissingExtra, match=f"{function.__name__}.*version '1'") as caught:
        bare.search(scenes / "scene_03.jpg")
    assert "encoder=" in caught.value.fix


def test_another_version_is_refused_and_so_is_another_encoder(tmp_path: Path) -> None:
    resight.open(tmp_path / "c", encoder=wrap())
    with pytest.raises(SpaceMismatch) as caught:
        resight.open(tmp_path / "c", encoder=wrap(version="2"))
    assert "version 1" in caught.value.expected and "version 2" in caught.value.actual
    with pytest.raises(SpaceMismatch):
        resight.open(tmp_path / "c", encoder="efficientnet_lite")


def test_an_encoder_takes_the_place_of_a_recipe_s_network(scenes: Path, tmp_path: Path) -> None:
    photos = resight.open(tmp_path / "c", "sift_tokens", encoder=wrap(cells))
    names = [branch.encoder.name for branch in photos.recipe.branches]
    assert names == ["sift", "own", "sift", "own", "xfeat"]  # key points stay
    photos.add(*sorted(scenes.iterdir())[:4])
    assert photos.search(scenes / "scene_02.jpg", k=1)[0].id == "scene_02.jpg"
    with pytest.raises(RecipeError, match="no branch for this encoder"):
        resight.open(tmp_path / "d", "sift", encoder=wrap())


@pytest.mark.parametrize(
    ("model", "named", "problem"),
    [
        (small, {}, "needs a name and a version"),
        (small, {"name": "small"}, "needs a name and a version"),
        (3, {"name": "x", "version": "1"}, "is no encoder"),
        (small, {"name": "x", "version": "1", "batch": 0}, "not a number"),
    ],
)
def test_what_is_no_encoder_is_refused(model: Any, named: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        resight.wrap_encoder(model, **named)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (lambda n: np.zeros((n + 1, 4)), r"\[1, D\]"),
        (lambda n: np.zeros(n), r"\[1, D\]"),
        (lambda n: np.full((n, 4), np.nan), "finite"),
        (lambda _: "text", "array of numbers"),
        (lambda n: np.zeros((n, 60, 4)), "square grid"),
    ],
)
def test_an_encoder_that_returns_something_else_is_refused(returned: Any, expected: str, tmp_path: Path) -> None:
    encoder = resight.wrap_encoder(lambda images: returned(len(images)), name="odd", version="1")
    with pytest.raises(InputError) as caught:
        resight.open(tmp_path / "c", encoder=encoder)
    assert "'odd' returns" in caught.value.problem
    assert re.search(expected, caught.value.expected)
    assert not (tmp_path / "c").exists()


def test_networks_of_torch_are_encoders(scenes: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    network = torch.nn.Conv2d(3, 4, 8, stride=8)

    def to_tensor(image: Image.Image) -> Any:
        return torch.from_numpy(np.asarray(image.resize((32, 32)), np.float32) / 255).permute(2, 0, 1)

    with pytest.raises(InputError, match="needs what makes its input"):
        resight.wrap_encoder(network)
    encoder = resight.wrap_encoder(network, processor=to_tensor)
    with pytest.raises(InputError, match="training mode"):
        resight.load_encoder(encoder)
    network.eval()
    found = resight.load_encoder(encoder).encode(scenes / "scene_00.jpg")
    assert found.tokens is not None and found.tokens[0].shape == (16, 4)
    same = resight.wrap_encoder(network, processor=to_tensor)
    assert same.fingerprint == encoder.fingerprint
    with torch.no_grad():
        network.bias += 1
    assert resight.wrap_encoder(network, processor=to_tensor).fingerprint != encoder.fingerprint


def test_networks_of_timm_bring_their_own_transform(scenes: Path) -> None:
    mend_torchvision()
    timm = pytest.importorskip("timm")
    network = timm.create_model("test_vit", pretrained=False).eval()
    found = resight.load_encoder(network).encode([scenes / "scene_00.jpg", scenes / "scene_01.jpg"])
    assert found.encoder == type(network).__name__
    assert found.pooled is not None and found.pooled.shape == (2, network.num_features)
    assert found.tokens is not None and found.tokens[0].shape == (100, network.num_features)


def test_networks_of_transformers_take_their_processor(scenes: Path) -> None:
    mend_torchvision()
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=32, patch_size=8
    )
    network = transformers.ViTModel(config).eval()
    processor = transformers.ViTImageProcessor(size={"height": 32, "width": 32})
    encoder = resight.load_encoder(resight.wrap_encoder(network, processor=processor))
    found = encoder.encode(scenes / "scene_00.jpg")
    assert found.tokens is not None and found.tokens[0].shape == (16, 16)


def test_a_model_like_those_of_sentence_transformers_is_asked_by_its_encode(scenes: Path) -> None:
    torch = pytest.importorskip("torch")

    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def encode(self, images: list[Image.Image], convert_to_numpy: bool, show_progress_bar: bool) -> np.ndarray:
            assert convert_to_numpy and not show_progress_bar
            return small(images)

    Model.__module__ = "sentence_transformers.SentenceTransformer"
    found = resight.load_encoder(resight.wrap_encoder(Model().eval(), name="clip", version="1")).encode(
        scenes / "scene_00.jpg"
    )
    assert found.pooled is not None and found.pooled.shape == (1, SIDE * SIDE * 3)


@pytest.fixture
def works(tmp_path: Path) -> resight.Collection:
    return resight.open(tmp_path / "v", encoder=resight.own_vectors("clip", dimensions=4))


def test_vectors_are_stored_found_replaced_and_filtered(works: resight.Collection, scenes: Path) -> None:
    vectors = np.eye(4)[:3] * 7
    report = works.add_vectors(["a", "b", "c"], vectors, attributes=[{"year": 1900 + n} for n in range(3)])
    assert (report.added, report.updated) == (3, 0)
    hits = works.search_vectors([0.0, 1.0, 0.1, 0.0], k=2)
    assert [hit.id for hit in hits] == ["b", "c"]
    assert hits[0].stages["pooled"] == pytest.approx(1 / np.hypot(1, 0.1), abs=1e-3)
    assert [one[0].id for one in works.search_vectors(vectors)] == ["a", "b", "c"]
    assert sorted(hit.id for hit in works.search_vectors(vectors[0], where=["year>1900"])) == ["b", "c"]
    report = works.add_vectors(["a"], [vectors[1]], paths=[scenes / "scene_01.jpg"])
    assert (report.added, report.updated) == (0, 1)
    record = next(works.records(["a"]))
    assert record.path == scenes / "scene_01.jpg" and record.size == (480, 360)
    assert works.search("c", k=1)[0].id == "c"  # by its id
    assert works.delete(["c"]) == 1
    assert len(resight.open(works.path)) == 2
    with pytest.raises(InputError, match="holds vectors, and no encoder"):
        works.search(scenes / "scene_00.jpg")


def test_tokens_are_compared_by_late_interaction(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    works = resight.open(tmp_path / "v", encoder=resight.own_vectors("colpali", dimensions=8, tokens=True))
    tokens = [rng.normal(size=(count, 8)) for count in (3, 5, 2)]
    works.add_vectors(["a", "b", "c"], tokens, boxes=[np.tile([0, 0, 9, 9], (len(one), 1)) for one in tokens])
    hits = works.search_vectors(tokens[1][:2], k=3)
    assert hits[0].id == "b" and hits[0].stages["tokens"] == pytest.approx(1, abs=1e-3)
    assert [one[0].id for one in works.search_vectors(tokens, k=1)] == ["a", "b", "c"]
    assert works.search("b", k=1)[0].id == "b"


def test_vectors_of_the_encoder_of_a_collection_serve_it_too(scenes: Path, tmp_path: Path) -> None:
    paths = sorted(scenes.iterdir())[:3]
    found = resight.load_encoder(wrap()).encode(paths)
    photos = resight.open(tmp_path / "c", encoder=wrap())
    assert found.pooled is not None
    photos.add_vectors(found.ids, found.pooled, paths=paths)
    assert photos.search(paths[2], k=1)[0].id == "scene_02.jpg"
    assert photos.search(paths[2], k=1)[0].stages["pooled"] == pytest.approx(1, abs=1e-4)


def test_tokens_of_the_encoder_of_a_collection_serve_it_too(scenes: Path, tmp_path: Path) -> None:
    paths = sorted(scenes.iterdir())[:4]
    photos = resight.open(tmp_path / "c", "tokens")
    encoded = resight.load_encoder("tokens").encode(paths)
    tokens = encoded.tokens
    assert tokens is not None and tokens.boxes is not None
    boxes = [tokens.boxes[begin:end] for begin, end in zip(tokens.offsets, tokens.offsets[1:], strict=False)]
    photos.add_vectors(encoded.ids[:2], list(tokens)[:2], paths=paths[:2], boxes=boxes[:2])  # to an empty collection
    photos.add(paths[2])
    photos.add_vectors(encoded.ids[3:], list(tokens)[3:], paths=paths[3:], boxes=boxes[3:])
    for path in paths:
        answer = photos.ask(path)
        assert answer.hits[0].id == path.name and answer.hits[0].box is not None


def test_stored_vectors_are_evaluated_and_matched_by_their_ids(works: resight.Collection) -> None:
    vectors = np.array([[1, 0, 0, 0.1], [0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0.1]])
    works.add_vectors(["b1", "b2", "a1", "a2"], vectors)
    truth = {"a1": ["b1"], "a2": ["b2"]}
    assert resight.evaluate(works, truth, metrics=["recall@1"]).rows[0].summary.figures["recall@1"].mean == 1
    # So few images have no probability of their own, and all scores are equal: the order of the search decides.
    assert [one.b for one in resight.match(works, works, least=0)] == ["b1", "b2", "a1", "a2"]


def test_all_images_have_boxes_or_none_has(works: resight.Collection, tmp_path: Path) -> None:
    tokens = resight.open(tmp_path / "t", encoder=resight.own_vectors("colpali", dimensions=4, tokens=True))
    tokens.add_vectors(["a"], [np.eye(4)], boxes=[np.tile([0, 0, 9, 9], (4, 1))])
    works.add_vectors(["a"], np.ones((1, 4)))
    for collection, boxes, problem in (
        (tokens, None, "'b' have no boxes"),
        (tokens, [None], "'b' have no boxes"),
        (works, [[[0, 0, 9, 9]]], "'b' have boxes"),
    ):
        with pytest.raises(InputError, match=problem):
            collection.add_vectors(["b"], np.ones((1, 4)), boxes=boxes)
        assert len(collection) == 1 and collection.search_vectors(np.ones(4))
    assert tokens.add_vectors(["a"], [np.eye(4)]).updated == 1  # all images are replaced


def test_attributes_are_values_that_filters_know(works: resight.Collection) -> None:
    works.add_vectors(["a"], np.ones((1, 4)), attributes=[{"year": np.int64(1888), "note": None}])
    assert next(works.records(["a"])).attributes == {"year": 1888}
    with pytest.raises(InputError, match="attribute that cannot be filtered by"):
        works.add_vectors(["b"], np.ones((1, 4)), attributes=[{"years": [1888, 1889]}])
    assert [hit.id for hit in works.search_vectors(np.ones(4), where=["year=1888"])] == ["a"]


@pytest.mark.parametrize(
    ("ids", "vectors", "others", "problem"),
    [
        (["a"], np.zeros((1, 4)), {}, "have no direction"),
        (["a"], np.full((1, 4), np.nan), {}, "have no direction"),
        (["a"], np.ones((1, 3)), {}, "do not fit the collection"),
        (["a"], np.ones((1, 2, 4)), {}, "do not fit the collection"),
        (["a"], [["x"] * 4], {}, "do not fit the collection"),
        (["a", "b"], np.ones((1, 4)), {}, "do not belong together"),
        (["a"], iter([np.ones(4)]), {}, "do not belong together"),
        (["a", "a"], np.ones((2, 4)), {}, "ids are not unique"),
        ([""], np.ones((1, 4)), {}, "an id is empty"),
        (["a"], np.ones((1, 4)), {"attributes": []}, "do not belong together"),
    ],
)
def test_vectors_that_do_not_fit_are_refused_and_nothing_is_added(
    works: resight.Collection, ids: list[str], vectors: Any, others: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        works.add_vectors(ids, vectors, **others)
    assert caught.value.expected and caught.value.fix
    assert len(works) == 0


def test_boxes_fit_their_vectors_and_other_collections_take_none(works: resight.Collection, indexed: Path) -> None:
    with pytest.raises(BoxError):
        works.add_vectors(["a"], np.ones((1, 4)), boxes=[[0, 0, 1]])
    with pytest.raises(CollectionError, match="takes no vectors"):
        resight.open(indexed).search_vectors(np.ones(4))
    with pytest.raises(RecipeError, match="need a name and dimensions"):
        resight.own_vectors("", dimensions=3)


def test_a_recipe_and_an_encoder_by_name_give_arrays(scenes: Path) -> None:
    paths = sorted(scenes.iterdir())[:3]
    encoder = resight.load_encoder("tokens")
    found = encoder.encode(paths, show_progress=True)
    assert found.ids == ("scene_00.jpg", "scene_01.jpg", "scene_02.jpg") and found.sizes.tolist() == [[480, 360]] * 3
    assert found.tokens is not None and found.pooled is not None
    assert found.tokens.offsets[-1] == len(found.tokens.vectors) == len(found.tokens.boxes)  # type: ignore[arg-type]
    assert np.allclose(np.linalg.norm(found.pooled, axis=1), 1, atol=1e-5)
    scores = encoder.maxsim(found, paths[:2])
    expected = [[(a @ b.T).max(axis=1).mean() for b in list(found.tokens)[:2]] for a in found.tokens]
    assert np.allclose(scores, expected, atol=1e-4)
    assert np.allclose(encoder.similarity(found, found), found.pooled @ found.pooled.T)
    assert encoder.similarity([], found).shape == (0, 3) and encoder.maxsim(found, []).shape == (3, 0)
    assert np.array_equal(encoder.encode(Image.open(paths[0])).pooled, found.pooled[:1])
    with pytest.raises(SpaceMismatch):
        encoder.similarity(found, resight.load_encoder(load("craters")).encode(paths[0]))


def test_an_image_that_cannot_be_read_is_an_error_or_is_listed(scenes: Path) -> None:
    encoder = resight.load_encoder(wrap())
    images = [scenes / "scene_00.jpg", b"no image", scenes / "scene_01.jpg"]
    with pytest.raises(InputError, match="image 2 of the batch"):
        encoder.encode(images)
    found = encoder.encode(iter(images), errors="skip")
    assert found.ids == ("scene_00.jpg", "scene_01.jpg") and len(found.skipped) == 1
    assert len(encoder.encode([])) == 0
    with pytest.raises(InputError, match="gives no tokens"):
        encoder.maxsim(found, found)


@pytest.mark.parametrize("name", ["no such encoder", "sift_local_nothing.toml", "orb", "sift"])
def test_what_gives_no_vectors_is_refused(name: str) -> None:
    with pytest.raises(InputError) as caught:
        resight.load_encoder(name)
    assert caught.value.fix


def test_a_misspelt_encoder_is_answered_with_recipes_and_networks() -> None:
    for name, meant in (("token", "'tokens'"), ("dinov2_vits", "'dinov2_vits14'")):
        with pytest.raises(RecipeError) as caught:
            resight.load_encoder(name)
        assert meant in caught.value.fix


def test_an_onnx_file_moves_into_the_collection(scenes: Path, tmp_path: Path) -> None:
    path = tmp_path / "small.onnx"
    write_network(path)
    photos = resight.open(tmp_path / "c", encoder=str(path))
    photos.add(*sorted(scenes.iterdir())[:3])
    path.unlink()
    assert resight.open(tmp_path / "c").search(scenes / "scene_02.jpg", k=1)[0].id == "scene_02.jpg"


def write_network(path: Path) -> None:
    """One convolution with a stride of 16."""
    onnx = pytest.importorskip("onnx")
    kernel = np.random.default_rng(0).normal(size=(8, 3, 16, 16)).astype(np.float32)
    images = onnx.helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, ["n", 3, "h", "w"])
    maps = onnx.helper.make_tensor_value_info("map", onnx.TensorProto.FLOAT, ["n", 8, "rows", "columns"])
    node = onnx.helper.make_node("Conv", ["image", "kernel"], ["map"], strides=[16, 16], kernel_shape=[16, 16])
    weights = [onnx.numpy_helper.from_array(kernel, "kernel")]
    graph = onnx.helper.make_graph([node], "small", [images], [maps], weights)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=10), path)
