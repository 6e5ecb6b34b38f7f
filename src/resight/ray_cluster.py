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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import numpy as np

from resight import kernels
from resight.errors import ClusterError, InputError, MissingExtra

ENGINES = "local, ray, ray://HOST:PORT, ray://auto, qdrant://HOST:PORT/NAME or qdrant:FOLDER"
AUTO = "auto"
ANSWER_SECONDS = 3.0  # an address may take to answer
VERSION_SECONDS = 120.0  # a node may take to start its first worker and tell its versions
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
    """Start Ray, or join the cluster that `engine` names; nothing where this process is connected already."""
    wanted = parse_engine(engine)
    if wanted.kind != "ray":
        raise InputError(f"{engine!r} is no Ray cluster", expected="ray, ray://HOST:PORT or ray://auto", actual=engine)
    ray = import_ray()
    if ray.is_initialized():
        return
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    logging.getLogger("ray").setLevel(logging.ERROR)
    address = _find_running(wanted.address) if wanted.address else "local"
    quiet = {"log_to_driver": False, "configure_logging": False, "include_dashboard": None if wanted.address else False}
    with cluster_errors(f"no way into the Ray cluster {engine}"), warnings.catch_warnings(), _silence_stderr():
        warnings.simplefilter("ignore")  # Ray warns of its own parts, which is nobody's error
        ray.init(address=address, **quiet)


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
    }


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
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _unanswered(f"ray://{address}", str(error)) from error
    return address


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
