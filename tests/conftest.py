import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Tests of every folder import the shared builders by their plain names.
sys.path.insert(0, str(Path(__file__).parent))

from support.ray_fixture import ray_cluster  # noqa: F401 - a fixture, found by its name here

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # some tests import onnxruntime themselves
os.environ["HF_HUB_OFFLINE"] = "1"  # no test waits for a network, or passes only where there is one

# The first example pays for imports and caches, so that a time limit for one example says nothing.
settings.register_profile("resight", deadline=None)
settings.load_profile("resight")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the real data sets."""
    if "RESIGHT_DATA" not in os.environ:
        pytest.skip("RESIGHT_DATA does not name the real data")
    return Path(os.environ["RESIGHT_DATA"])


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Commands that keep features do so here, not in the user's folder."""
    os.environ["RESIGHT_CACHE"] = str(tmp_path_factory.mktemp("features"))
