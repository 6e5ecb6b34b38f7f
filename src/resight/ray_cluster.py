"""Engines by name, and connecting to a Ray cluster.

In: the value of `--engine`: "local", "ray" (a cluster on this machine, which ends with the process), "ray://HOST:PORT"
(a running cluster; PORT is that of `ray start --head`), "ray://auto" (the cluster that this machine is a node of) or
"qdrant…". Out: a connected process, or an error within seconds where Ray itself would retry for minutes. A process has
one cluster at a time: "ray" joins the cluster that the process is connected to.
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
from resight.errors import ClusterError, InputError, MissingExtra, install_extra

ENGINES = "local, ray, ray://HOST:PORT, ray://auto, qdrant://HOST:PORT/NAME or qdrant:FOLDER"
AUTO = "auto"
ANSWER_SECONDS = 5.0  # timeout of an address
SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # header of an HTTP/2 frame: length, type (4), flags, stream
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS  # an HTTP/2 server such as Ray answers with SETTINGS
VERSION_SECONDS = 120.0  # timeout of a node that starts its first worker and reports its versions
PACKAGES = {  # packages that change rows or scores, with the names of their distributions
    "opencv": ("opencv-python-headless", "opencv-python", "opencv-contrib-python-headless", "opencv-contrib-python"),
    "pillow": ("pillow",),
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu"),
    "faiss": ("faiss-cpu", "faiss-gpu"),
    "pylance": ("pylance",),
}
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # Ray sends no usage statistics
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # keep Ray's log out of the user's terminal
    "RAY_worker_niceness": "0",  # workers run at normal priority: they do the command's own work
    "RAY_worker_register_timeout_seconds": "600",  # on a busy machine a worker may start slowly
}


@dataclass(frozen=True)
class Engine:
    kind: Literal["local", "ray", "qdrant"]
    address: str = ""  # the part after the kind; for Ray HOST:PORT, "auto", or empty for a new cluster


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


def connect(engine: str) -> None:
    """Start Ray or join the cluster that `engine` names; does nothing if this process is connected to it."""
    wanted = parse_engine(engine)
    if wanted.kind != "ray":
        raise InputError(
            f"{engine!r} is not a Ray cluster", expected="ray, ray://HOST:PORT or ray://auto", actual=engine
        )
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
    with cluster_errors(f"cannot connect to the Ray cluster {engine}"), warnings.catch_warnings(), _silence_stderr():
        warnings.simplefilter("ignore")  # Ray warns about its own internals
        ray.init(address=address, **quiet)


def forbid_auto_connect() -> None:
    """Make calls to Ray after its shutdown fail; by default Ray would start a new cluster."""
    with suppress(ImportError):  # the hook is private and may move
        importlib.import_module("ray._private.auto_init_hook").enable_auto_connect = False  # type: ignore[attr-defined]


def check_versions() -> None:
    """ClusterError unless every node of the cluster runs the same versions as this process."""
    ray = import_ray()
    mine = list_versions()
    pending = []
    for node in ray.nodes():
        if node["Alive"]:
            on_node = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            task = ray.remote(num_cpus=0, max_retries=1, scheduling_strategy=on_node)(_list_versions_there)
            pending.append((f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})", task.remote()))
    for name, answer in pending:
        with cluster_errors(f"the node {name} does not report its versions"):
            theirs = ray.get(answer, timeout=VERSION_SECONDS)
        refuse_skew(name, theirs, mine)


def list_versions() -> dict[str, str]:
    """Versions that must be the same on all nodes for the same rows and scores."""
    return {
        "resight": metadata.version("resight"),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "numpy": np.__version__,
        "kernels": kernels.implementation(),
        **{name: _find_version(packages) for name, packages in PACKAGES.items()},
    }


def _find_version(packages: Iterable[str]) -> str:
    """The version of the first package that is installed."""
    for package in packages:
        with suppress(metadata.PackageNotFoundError):
            return metadata.version(package)
    return "none"


def _list_versions_there() -> dict[str, str]:
    """Runs on a node: the versions installed there."""
    return list_versions()


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
            fix=install_extra("ray"),
        ) from error


@contextmanager
def cluster_errors(problem: str) -> Iterator[None]:
    """Raise errors of Ray as a ClusterError with `problem`."""
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
    """Silence file descriptor 2: Ray's compiled part writes to it directly, whatever its log level and sys.stderr."""
    saved = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def _find_running(address: str) -> str:
    """HOST:PORT of a cluster, once it has answered."""
    if address == AUTO:
        services = importlib.import_module("ray._private.services")
        try:
            address = services.get_ray_address_from_environment(AUTO, None)
        except ConnectionError as error:
            raise _unanswered("ray://auto", "no Ray on this machine") from error
    try:
        with socket.create_connection(_split(address), ANSWER_SECONDS) as connection:
            if os.environ.get("RAY_USE_TLS", "0") not in ("0", ""):
                return address  # it answers only to a certificate
            connection.sendall(GREETING)
            with connection.makefile("rb") as answer:
                head = answer.read(len(SETTINGS))
    except (OSError, OverflowError) as error:
        raise _unanswered(f"ray://{address}", str(error)) from error
    if head[3:4] != SETTINGS[3:4]:
        raise _unanswered(f"ray://{address}", "the server there is not Ray")
    return address


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _refuse_another(address: str) -> None:
    """ClusterError if this process is connected to another cluster than `address`; an empty address fits any."""
    if address in ("", AUTO):
        return
    ray = import_ray()
    mine = ray.get_runtime_context().gcs_address
    (host, port), (my_host, my_port) = _split(address), _split(mine)
    hosts, my_hosts = _resolve(host), _resolve(my_host)
    if my_hosts & _resolve(ray.util.get_node_ip_address()):  # the head node is this machine, under any of its names
        my_hosts |= _resolve("localhost") | _resolve(socket.gethostname())
    if port != my_port or not hosts & my_hosts:
        raise ClusterError(
            f"this process is connected to another Ray cluster than ray://{address}",
            expected=f"ray://{mine}, or ray for the connected cluster",
            actual=f"ray://{address}",
            fix="use one cluster per process; ray.shutdown() disconnects from this one",
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
