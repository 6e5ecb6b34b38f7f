"""What engines are called, and what becomes of addresses and versions that do not fit. No cluster is started here."""

import socket
import time

import pytest

from resight.errors import ClusterError, InputError
from resight.ray_cluster import Engine, connect, is_engine, parse_engine, refuse_skew, tell_versions


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        ("local", Engine("local")),
        ("ray", Engine("ray")),
        ("ray://10.0.0.1:6379", Engine("ray", "10.0.0.1:6379")),
        ("ray://[::1]:6379", Engine("ray", "[::1]:6379")),
        ("ray://auto", Engine("ray", "auto")),
        ("qdrant://localhost:6333/photos", Engine("qdrant", "//localhost:6333/photos")),
        ("qdrant:folder", Engine("qdrant", "folder")),
    ],
)
def test_an_engine_is_its_kind_and_its_address(text: str, engine: Engine) -> None:
    assert parse_engine(text) == engine


@pytest.mark.parametrize("text", ["", "spark", "ray:", "ray://", "ray://host", "ray://:6379", "ray:a:6379", "qdrant:"])
def test_what_is_no_engine_is_refused_with_the_list_of_engines(text: str) -> None:
    assert not is_engine(text)
    with pytest.raises(InputError) as caught:
        parse_engine(text)
    assert caught.value.expected.startswith("local, ray, ray://HOST:PORT")


def test_an_address_that_does_not_answer_is_an_error_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'resight[ray]'")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with socket.socket() as taken:  # bound and not listening: nobody answers, and nobody else gets the port
        taken.bind(("127.0.0.1", 0))
        before = time.monotonic()
        with pytest.raises(InputError, match="no Ray cluster answers") as caught:
            connect(f"ray://127.0.0.1:{taken.getsockname()[1]}")
    assert time.monotonic() - before < 10
    assert "refused" in caught.value.actual
    assert "ray start --head" in caught.value.fix


def test_an_engine_that_is_not_ray_is_no_cluster_to_connect_to() -> None:
    with pytest.raises(InputError, match="no Ray cluster"):
        connect("qdrant:folder")


def test_skew_names_the_node_and_both_versions_of_what_differs() -> None:
    mine = {"resight": "0.2.0", "numpy": "2.1.0"}
    refuse_skew("b", dict(mine), mine)
    with pytest.raises(ClusterError) as caught:
        refuse_skew("b (10.0.0.2)", {"resight": "0.1.0", "numpy": "2.1.0"}, mine)
    assert "b (10.0.0.2)" in caught.value.problem
    assert (caught.value.expected, caught.value.actual) == ("resight 0.2.0, as here", "resight 0.1.0")


def test_every_node_tells_what_rows_depend_on() -> None:
    assert set(tell_versions()) == {"resight", "python", "numpy", "kernels"}
