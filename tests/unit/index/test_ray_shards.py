import pytest

from resight import index
from resight.errors import RecipeError
from resight.types import Choice

pytest.importorskip("ray", reason="ray is not installed: pip install 'resight[ray]'")


@pytest.mark.parametrize(("name", "settings"), [("ivfpq", {}), ("maxsim", {"cascade": True, "cascade_dims": 2})])
def test_an_inner_index_whose_answer_would_change_is_refused(name: str, settings: dict[str, object]):
    with pytest.raises(RecipeError, match=f"{name!r} with these settings cannot be split into shards"):
        index.build("ray_shards", inner=Choice(name, settings))
