import pytest


@pytest.fixture(autouse=True)
def start_cluster(request: pytest.FixtureRequest) -> None:
    """A plug-in that runs on Ray joins the session's cluster, which starts with the first test that needs it."""
    if "ray_" in request.node.name:
        request.getfixturevalue("ray_cluster")
