"""The index qdrant takes its key and address from variables that are meant for Qdrant, and from no other."""

import pytest

pytest.importorskip("qdrant_client")

from resight import index as indexes
from resight.errors import InputError


@pytest.mark.parametrize(
    "settings", [{"key": "AWS_SECRET_ACCESS_KEY"}, {"key": "HOME"}, {"url": "AWS_SECRET_ACCESS_KEY"}]
)
def test_a_recipe_reads_no_other_secret(settings: dict[str, str]) -> None:
    with pytest.raises(InputError, match="not meant for Qdrant"):
        indexes.build("qdrant", **{"url": "https://thief.example", **settings})


@pytest.mark.parametrize("settings", [{}, {"url": "RESIGHT_QDRANT_URL"}, {"url": "http://x", "key": "QDRANT_API_KEY"}])
def test_variables_for_qdrant_are_fine(settings: dict[str, str]) -> None:
    indexes.build("qdrant", **settings)
