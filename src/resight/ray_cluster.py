"""Engines by name, and the way to a Ray cluster.

In goes what `--engine` says: "local", "ray" (a cluster of this machine alone, which ends with the process),
"ray://HOST:PORT" (one that runs; PORT is that of `ray start --head`), "ray://auto" (the one that this machine is a node
of) or "qdrant…". Out comes a process that is connected, or an error within seconds where Ray itself would try for
minutes. A process has one cluster at a time: who asks for "ray" while there is one gets that one.
"""

import importlib
import logging
import os
import platform
import socket
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import numpy as np

from resight import kernels
from resight.errors import ClusterError, InputError, MissingExtra

ENGINES = "local, ray, ray://HOST:PORT, ray://auto, qdrant://HOST:PORT/NAME or qdrant:FOLDER"
AUTO = "auto"
ANSWER_SECONDS = 5.0  # an address may take to answer
SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # the head of a frame of HTTP/2: its length, its kind (4), and so on
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS  # what speaks HTTP/2, as Ray does, answers with its own
VERSION_SECONDS = 120.0  # a node may take to start its first worker and tell its versions
PACKAGES = {  # that rows and scores depend on, and the names under which they are installed
    "opencv": ("opencv-python-headless", "opencv-python", "opencv-contrib-python-headless", "opencv-contrib-python"),
    "pillow": ("pillow",),
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu"),
    "faiss": ("faiss-cpu", "faiss-gpu"),
    "pylance": ("pylance",),
}
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent home without being asked for
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # it would write to the terminal of whoever uses it
    "RAY_worker_niceness": "0",  # the workers do what the command was started for
    "RAY_worker_register_timeout_seconds": "600",  # on a busy machine a worker takes long to start, and is not lost
}


@dataclass(frozen=True)
class Engine:
    kind: Literal["local", "ray", "qdrant"]
    address: str = ""  # what comes after the kind; of a Ray cluster HOST:PORT, "auto", or nothing: a new one


def parse_engine(text: str) -> Engine:
    if text in ("local", "ray"):
        return Engine("local" if text == "local" else "ray")
    kind, _, rest = text.partition(":")
    if kind == "ray" and _is_address(rest.removeprefix("//")) and rest.startswith("//"):
        return Engine("ray", rest.removeprefix("//"))
    if kind == "qdrant" and rest.strip("/"):
        return Engine("qdrant", rest)
    raise InputError(
        f"there is no engine {text!r}", expected=ENGINES, actual=repr(text), fix="check the spelling of --engine"
    )


def is_engine(text: str) -> bool:
    try:
        parse_engine(text)
    except InputError:
        return False
    return True


def connect(engine: str) -> None:
    """Start Ray, or join the cluster that `engine` names; nothing where this process is connected to it already."""
    wanted = parse_engine(engine)
    if wanted.kind != "ray":
        raise InputError(f"{engine!r} is no Ray cluster", expected="ray, ray://HOST:PORT or ray://auto", actual=engine)
    ray = import_ray()
    forbid_auto_connect()
    if ray.is_initialized():
        _refuse_another(wanted.address)
        return
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    logging.getLogger("ray").setLevel(logging.ERROR)
    address = _find_running(wanted.address) if wanted.address else "local"
    quiet = {"log_to_driver": False, "configure_logging": False, "include_dashboard": None if wanted.address else False}
    with cluster_errors(f"no way into the Ray cluster {engine}"), warnings.catch_warnings(), _silence_stderr():
        warnings.simplefilter("ignore")  # Ray warns of its own parts, which is nobody's error
        ray.init(address=address, **quiet)


def forbid_auto_connect() -> None:
    """A call to Ray after it was shut down is an error from now on, where Ray would start a cluster by itself."""
    with suppress(ImportError):  # other releases may do it elsewhere
        importlib.import_module("ray._private.auto_init_hook").enable_auto_connect = False  # type: ignore[attr-defined]


def check_versions() -> None:
    """Every node of the cluster runs what this process runs, or a ClusterError says which one does not, and what."""
    ray = import_ray()
    mine = tell_versions()
    asked = []
    for node in ray.nodes():
        if node["Alive"]:
            place = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            task = ray.remote(num_cpus=0, max_retries=1, scheduling_strategy=place)(_tell_there)
            asked.append((f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})", task.remote()))
    for name, answer in asked:
        with cluster_errors(f"the node {name} does not tell its versions"):
            theirs = ray.get(answer, timeout=VERSION_SECONDS)
        refuse_skew(name, theirs, mine)


def tell_versions() -> dict[str, str]:
    """What has to be the same on every node for their rows and scores to be the same."""
    return {
        "resight": metadata.version("resight"),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "numpy": np.__version__,
        "kernels": kernels.implementation(),
        **{name: _find_version(packages) for name, packages in PACKAGES.items()},
    }


def _find_version(packages: Iterable[str]) -> str:
    """Of the first that is installed."""
    for package in packages:
        with suppress(metadata.PackageNotFoundError):
            return metadata.version(package)
    return "none"


def _tell_there() -> dict[str, str]:
    """Runs on a node, with what is installed there."""
    return tell_versions()


def refuse_skew(node: str, theirs: Mapping[str, str], mine: Mapping[str, str]) -> None:
    skewed = [name for name in mine if theirs.get(name) != mine[name]]
    if skewed:
        raise ClusterError(
            f"the node {node} runs another version",
            expected=", ".join(f"{name} {mine[name]}" for name in skewed) + ", as here",
            actual=", ".join(f"{name} {theirs.get(name, '(none)')}" for name in skewed),
            fix="install the same versions on all nodes, and start Ray there again",
        )


def import_ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "the engine 'ray' needs the Python package 'ray', which is not installed",
            expected="'ray' to be importable",
            actual=str(error),
            fix="pip install 'resight[ray]'",
        ) from error


@contextmanager
def cluster_errors(problem: str) -> Iterator[None]:
    """What goes wrong inside Ray leaves as a ClusterError that begins with `problem`."""
    ray = import_ray()
    try:
        yield
    except (ray.exceptions.RayError, RuntimeError, ConnectionError, TimeoutError, OSError) as error:
        raise ClusterError(
            problem,
            expected="a cluster whose nodes answer and run the same version of Ray and Python",
            actual=(str(error).strip() or type(error).__name__).splitlines()[-1],
            fix="see `ray status` on one of its nodes; a cluster with a token needs RAY_AUTH_MODE=token here too",
        ) from error


@contextmanager
def _silence_stderr() -> Iterator[None]:
    """Told to be quiet, the compiled part of Ray announces that it will be, and Python's own stderr is not asked."""
    saved = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def _find_running(address: str) -> str:
    """HOST:PORT of a cluster that answers."""
    if address == AUTO:
        services = importlib.import_module("ray._private.services")
        try:
            address = services.get_ray_address_from_environment(AUTO, None)
        except ConnectionError as error:
            raise _unanswered("ray://auto", "no Ray on this machine") from error
    try:
        with socket.create_connection(_split(address), ANSWER_SECONDS) as connection:
            if os.environ.get("RAY_USE_TLS", "0") not in ("0", ""):
                return address  # it answers to a certificate alone
            connection.sendall(GREETING)
            with connection.makefile("rb") as answer:
                head = answer.read(len(SETTINGS))
    except (OSError, OverflowError) as error:
        raise _unanswered(f"ray://{address}", str(error)) from error
    if head[3:4] != SETTINGS[3:4]:
        raise _unanswered(f"ray://{address}", "something answers that is no Ray")
    return address


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _refuse_another(address: str) -> None:
    """Where this process is connected, nothing is wanted but the cluster at `address` (any, if there is none)."""
    if address in ("", AUTO):
        return
    ray = import_ray()
    mine = ray.get_runtime_context().gcs_address
    (host, port), (my_host, my_port) = _split(address), _split(mine)
    hosts, my_hosts = _resolve(host), _resolve(my_host)
    if my_hosts & _resolve(ray.util.get_node_ip_address()):  # the head is this machine, whatever it is called
        my_hosts |= _resolve("localhost") | _resolve(socket.gethostname())
    if port != my_port or not hosts & my_hosts:
        raise ClusterError(
            f"this process is connected to another Ray cluster than ray://{address}",
            expected=f"ray://{mine}, or ray: the cluster that it is connected to",
            actual=f"ray://{address}",
            fix="use one cluster in a process; ray.shutdown() leaves this one",
        )


def _resolve(host: str) -> set[str]:
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(host, None)}
    except OSError:
        return {host}


def _unanswered(engine: str, actual: str) -> InputError:
    return InputError(
        f"no Ray cluster answers at {engine}",
        expected="the address of a head node, e.g. ray://10.0.0.1:6379",
        actual=actual,
        fix="start one with `ray start --head --port 6379`, or use --engine ray",
    )


def _is_address(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return text == AUTO or bool(host and port.isdecimal())
