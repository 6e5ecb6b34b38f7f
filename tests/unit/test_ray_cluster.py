"""What engines are called, and what becomes of addresses and versions that do not fit. No cluster is started here."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import metadata
from types import SimpleNamespace

import pytest

from resight import ray_cluster
from resight.errors import ClusterError, InputError
from resight.ray_cluster import Engine, connect, list_versions, parse_engine, refuse_skew


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


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bytes], str]]:
    """Starts something that accepts connections and answers them with these bytes alone; gives its engine."""
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'resight[ray]'")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray_cluster, "ANSWER_SECONDS", 60.0)  # what answers is waited for on a busy machine, too
    monkeypatch.delenv("RAY_USE_TLS", raising=False)
    with ExitStack() as left:

        def start(answer: bytes) -> str:
            server = left.enter_context(socket.create_server(("127.0.0.1", 0)))

            def serve() -> None:
                connection = left.enter_context(server.accept()[0])
                connection.sendall(answer)

            threading.Thread(target=serve, daemon=True).start()
            return f"ray://127.0.0.1:{server.getsockname()[1]}"

        yield start


def test_an_address_that_accepts_and_never_answers_is_an_error_within_seconds(
    answering: Callable[[bytes], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "ANSWER_SECONDS", 0.5)
    with pytest.raises(InputError, match="no Ray cluster answers") as caught:
        connect(answering(b""))
    assert caught.value.actual == "timed out"


def test_an_address_where_something_else_answers_is_no_cluster(answering: Callable[[bytes], str]) -> None:
    with pytest.raises(InputError, match="no Ray cluster answers") as caught:
        connect(answering(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    assert caught.value.actual == "the server there is not Ray"


def test_where_the_head_of_a_cluster_answers_ray_is_asked_to_join(
    answering: Callable[[bytes], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    joined: list[str] = []
    monkeypatch.setattr("ray.init", lambda address, **_: joined.append(address))
    engine = answering(ray_cluster.SETTINGS)
    connect(engine)
    assert joined == [engine.removeprefix("ray://")]


@pytest.mark.parametrize("engine", ["ray", "ray://auto", "ray://127.0.0.1:6379", "ray://localhost:6379"])
@pytest.mark.usefixtures("connected")
def test_who_is_connected_stays_so(engine: str) -> None:
    connect(engine)


@pytest.mark.parametrize("engine", ["ray://127.0.0.1:6380", "ray://192.0.2.7:6379"])
@pytest.mark.usefixtures("connected")
def test_who_is_connected_is_not_given_another_cluster_than_they_name(engine: str) -> None:
    with pytest.raises(ClusterError, match="connected to another Ray cluster") as caught:
        connect(engine)
    assert caught.value.actual == engine
    assert "ray://127.0.0.1:6379" in caught.value.expected


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if to a cluster of this machine."""
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'resight[ray]'")
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "get_runtime_context", lambda: SimpleNamespace(gcs_address="127.0.0.1:6379"))
    monkeypatch.setattr(ray.util, "get_node_ip_address", lambda: "127.0.0.1")


def test_an_engine_that_is_not_ray_is_no_cluster_to_connect_to() -> None:
    with pytest.raises(InputError, match="not a Ray cluster"):
        connect("qdrant:folder")


def test_skew_names_the_node_and_both_versions_of_what_differs() -> None:
    mine = {"resight": "0.2.0", "numpy": "2.1.0"}
    refuse_skew("b", dict(mine), mine)
    with pytest.raises(ClusterError) as caught:
        refuse_skew("b (10.0.0.2)", {"resight": "0.1.0", "numpy": "2.1.0"}, mine)
    assert "b (10.0.0.2)" in caught.value.problem
    assert (caught.value.expected, caught.value.actual) == ("resight 0.2.0, as here", "resight 0.1.0")


def test_every_node_tells_what_rows_depend_on() -> None:
    versions = list_versions()
    assert set(versions) == {
        *("resight", "python", "numpy", "kernels", "opencv", "pillow", "onnxruntime", "faiss", "pylance")
    }
    assert versions["pillow"] == metadata.version("pillow")


def test_what_is_not_installed_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ray_cluster.PACKAGES, "faiss", ("no-such-package",))
    assert list_versions()["faiss"] == "none"
