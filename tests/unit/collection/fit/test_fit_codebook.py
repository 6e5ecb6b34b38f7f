from collections.abc import Iterator, Sequence
from pathlib import Path

import cv2
import numpy as np
import pytest
from support.builders import draw_texture

from resight import recipe as recipes
from resight.collection import open_collection
from resight.collection.fit import fit_codebook
from resight.collection.fit.fit_codebook import sample_features
from resight.collection.image_list import ImageList
from resight.encode import backbones, codebook
from resight.errors import InputError, RecipeError, SpaceMismatch
from resight.types import ImageRef, Recipe

NAMES = [f"{number}.png" for number in range(6)]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    for number, name in enumerate(NAMES):
        cv2.imwrite(str(folder / name), draw_texture(np.random.default_rng(number)))
    return folder


def refs(photos: Path) -> list[ImageRef]:
    return [ImageRef(name, photos / name) for name in NAMES]


def make_recipe(*branches: tuple[str, dict], index: str | dict | None = None) -> Recipe:
    index = index or {"name": "bow_histogram", "tf_idf": False}  # every one of so few images has most of so few words
    tables = [{"encoder": encoder, "descriptor": descriptor} for encoder, descriptor in branches]
    return recipes.parse({"name": "learnt", "branches": tables, "index": index})


def bow(words: int = 16, **settings) -> dict:
    return {"name": "bow", "codebook": "learn", "words": words, **settings}


def list_files(recipe: Recipe) -> list[str]:
    return [str(branch.descriptor.settings["codebook"]) for branch in recipe.branches]


@pytest.mark.parametrize("encoder", ["sift", "orb"])
def test_a_collection_is_made_with_words_of_its_own_images(photos: Path, tmp_path: Path, encoder: str):
    collection = fit_codebook.open_learning(tmp_path / "c", make_recipe((encoder, bow())), [photos])
    collection.add(photos)
    assert collection.search(photos / "3.png", 1)[0].id == "3.png"
    (file,) = list_files(open_collection(tmp_path / "c").recipe)
    book = codebook.load(Path(file), "vlad_256")
    assert len(book.centres) == 16
    assert book.is_binary == (encoder == "orb")
    assert Path(file).is_relative_to(tmp_path / "c")


def test_vlad_of_tokens_is_learnt_too(photos: Path, tmp_path: Path):
    vlad = {"name": "vlad", "codebook": "learn", "words": 8, "normalise": True}
    recipe = make_recipe(("efficientnet_lite", vlad), index="exact")
    collection = fit_codebook.open_learning(tmp_path / "c", recipe, [refs(photos)])
    collection.add(refs(photos))
    assert collection.search(photos / "2.png", 1)[0].id == "2.png"


def test_branches_with_the_same_words_share_a_file_and_those_of_one_encoder_the_features(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    sampled = []

    def watch(sources: Sequence, backbone: backbones.Backbone, *rest, **more) -> np.ndarray:
        sampled.append(backbone.fingerprint.partition("(")[0])
        return sample_features(sources, backbone, *rest, **more)

    monkeypatch.setattr(fit_codebook, "sample_features", watch)
    soft = bow(assignment="soft")
    recipe = make_recipe(("sift", bow()), ("sift", soft), ("sift", bow(8)), ("orb", bow()))
    hard_16, soft_16, hard_8, orb_16 = list_files(fit_codebook.learn_codebooks(recipe, [photos], tmp_path))
    assert hard_16 == soft_16
    assert len({hard_16, hard_8, orb_16}) == 3
    assert sampled == ["sift", "orb"]


def test_the_rest_of_the_recipe_stays_as_it_is(photos: Path, tmp_path: Path):
    recipe = make_recipe(("sift", bow()), ("sift", {"name": "local"}))
    prepared = fit_codebook.learn_codebooks(recipe, [photos], tmp_path)
    assert prepared.branches[1] == recipe.branches[1]
    assert prepared.branches[0].descriptor.settings["words"] == 16
    assert recipe.branches[0].descriptor.settings["codebook"] == "learn"


def test_learning_again_gives_the_same_words(photos: Path, tmp_path: Path):
    books = []
    for number in range(2):
        (file,) = list_files(
            fit_codebook.learn_codebooks(make_recipe(("sift", bow())), [iter(refs(photos))], tmp_path / str(number))
        )
        books.append(codebook.load(Path(file), "vlad_256").fingerprint)
    assert books[0] == books[1]


def test_a_collection_that_is_there_keeps_its_words_for_other_images(photos: Path, tmp_path: Path):
    recipe = make_recipe(("sift", bow()))
    first = fit_codebook.open_learning(tmp_path / "c", recipe, [refs(photos)[:3]])
    first.add(refs(photos)[:3])
    again = fit_codebook.open_learning(tmp_path / "c", recipe, [refs(photos)[3:]])
    again.add(refs(photos)[3:])
    assert again.metadata.spaces == first.metadata.spaces
    assert len(again) == 6


def test_other_words_than_those_of_the_collection_are_refused(photos: Path, tmp_path: Path):
    fit_codebook.open_learning(tmp_path / "c", make_recipe(("sift", bow())), [photos])
    with pytest.raises(SpaceMismatch, match="other words"):
        fit_codebook.open_learning(tmp_path / "c", make_recipe(("sift", bow(17))), [photos])


def test_how_many_words_has_to_be_said(photos: Path, tmp_path: Path):
    recipe = make_recipe(("sift", {"name": "bow", "codebook": "learn"}))
    with pytest.raises(RecipeError, match="a number of words"):
        fit_codebook.learn_codebooks(recipe, [photos], tmp_path)


def test_more_words_than_features_are_refused_before_a_collection_is_made(photos: Path, tmp_path: Path):
    with pytest.raises(InputError, match="too few local features for 50 words"):
        fit_codebook.open_learning(tmp_path / "c", make_recipe(("sift", bow(50, sample=30))), [photos])
    assert not (tmp_path / "c").exists()


def test_an_image_gives_no_more_than_its_share_and_only_what_lies_in_its_box(photos: Path):
    (ref, *_) = refs(photos)
    backbone = backbones.build("sift")
    assert len(sample_features([ImageList(refs(photos))], backbone, 60, 0)) == 60
    whole = sample_features([ImageList([ref])], backbone, 10_000, 0)
    part = sample_features([ImageList([ImageRef("a", ref.path, (0, 0, 100, 100))])], backbone, 10_000, 0)
    assert 0 < len(part) < len(whole) / 3


def test_images_that_cannot_be_read_are_passed_over(photos: Path, tmp_path: Path):
    (tmp_path / "broken.png").write_bytes(b"nothing")

    def some() -> Iterator[ImageRef]:
        yield ImageRef("broken", tmp_path / "broken.png")
        yield refs(photos)[0]

    assert len(sample_features([ImageList(list(some()))], backbones.build("sift"), 100, 0)) == 50
    with pytest.raises(InputError, match="no image could be read"):
        sample_features([ImageList([ImageRef("broken", tmp_path / "broken.png")])], backbones.build("sift"), 100, 0)
