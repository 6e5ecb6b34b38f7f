"""One Ray cluster for all tests of a session: this machine alone, with a few logical CPUs."""

import gc
import logging
import os
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from resight.ray_cluster import ENVIRONMENT, forbid_auto_connect

CPUS = 3


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[Any]:
    """The module `ray`, connected; `resight.ray_cluster.connect("ray")` then joins it."""
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'resight[ray]'")
    logging.getLogger("ray").setLevel(logging.ERROR)
    os.environ.update(ENVIRONMENT)
    forbid_auto_connect()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.shutdown()  # what an earlier test of this process may have started by itself
        ray.init(
            address="local",
            num_cpus=CPUS,
            include_dashboard=False,
            log_to_driver=False,
            configure_logging=False,
            object_store_memory=200_000_000,
        )
    yield ray
    from resight.index.shards.replica_manager import stop_replica_managers  # it needs Ray

    stop_replica_managers()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.shutdown()
        gc.collect()  # what it leaves open is not laid to the next test
