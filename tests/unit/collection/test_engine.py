import pytest

from resight.collection.engine import SHARDS, list_local, spread, start_engine
from resight.errors import InputError
from resight.types import Branch, Choice, Recipe

EXACT, LATE = Choice("exact"), Choice("maxsim", {"kind": "int8", "keep": "none"})


@pytest.fixture(autouse=True)
def need_ray() -> None:
    pytest.importorskip("ray", reason="ray is not installed: pip install 'resight[ray]'")


def test_the_local_engine_leaves_an_index_as_it_is():
    assert spread(EXACT, "local") is EXACT


@pytest.mark.parametrize(
    "choice", [EXACT, LATE, Choice("maxsim", {"kind": "pq"}), Choice("bow_histogram", {"tf_idf": False})]
)
@pytest.mark.parametrize("engine", ["ray", "ray://10.0.0.1:6379", "ray://auto"])
def test_ray_keeps_an_index_in_shards_that_are_the_same_for_every_cluster(choice: Choice, engine: str):
    assert spread(choice, engine) == Choice("ray_shards", {"inner": choice, "shards": SHARDS})


@pytest.mark.parametrize(
    "choice", [Choice("ivfpq"), Choice("bow_histogram"), Choice("maxsim", {"cascade": True}), Choice("ray_shards")]
)
def test_what_cannot_be_divided_stays_and_so_does_what_is_in_shards_already(choice: Choice):
    assert spread(choice, "ray") is choice


def test_what_stays_here_is_told():
    branch = Branch(Choice("sift"), Choice("bow"), index=Choice("ivfpq"))
    recipe = Recipe("two", (branch, Branch(Choice("sift"), Choice("vlad"))), index=EXACT)
    assert list_local(recipe, "ray") == ["ivfpq"]
    assert list_local(recipe, "local") == []


def test_an_engine_that_does_not_exist_or_holds_no_collections_is_refused():
    with pytest.raises(InputError, match="there is no engine 'spark'"):
        start_engine("spark")
    with pytest.raises(InputError, match="resight export"):
        start_engine("qdrant:folder")
