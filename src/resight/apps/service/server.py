"""Runs the service until it receives SIGINT or SIGTERM: in one process, or in several that share the socket.

Each process builds the app from the settings in an environment variable. Index files are memory-mapped, so that the
processes share that memory. Each process also limits what glibc retains between searches. By default glibc keeps the
memory that threads free in up to eight arenas per core, several times what is in use; returning everything at once made
each search page in a hundred megabytes again, a third of the time of encoding a query. So there are few arenas, each
retains enough for one search, and the process trims them periodically. Other C libraries are left as they are.
"""

import contextlib
import ctypes
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from resight.apps.service import connection_limits, metrics
from resight.apps.service.app import create_app
from resight.apps.service.body_limit import MIN_SPEED
from resight.apps.service.connection_limits import PER_LOOPBACK, ConnectionLimits, LimitedProtocol
from resight.apps.service.request_logging import configure_logging
from resight.apps.service.settings import VARIABLE, ServiceSettings, read_settings, write_settings
from resight.errors import InputError

STOP = (signal.SIGINT, signal.SIGTERM)
KEEP_ALIVE = 15  # seconds
BACKLOG = 512
UNRESPONSIVE = 60  # seconds without a sign of life after which a process is replaced: a busy machine is no reason
PARENT_INTERVAL = 0.5  # seconds between two checks of the parent process
SWITCH = 0.0005  # seconds: a search hands over to LanceDB's threads about ten times, and waits this long each time
CONNECTIONS = 800  # per process, beside those that search; further ones replace silent ones, or are rejected
FILES = 2**14  # open files and connections per process, if the system allows them
MAX_REQUEST = 600.0  # seconds for a request, beside the time that a slow upload of the largest size takes

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD, ARENA_MAX = -1, -2, -3, -8  # options of mallopt(3)
ARENAS = 2
LARGE = 2**25  # bytes, the most that glibc accepts: larger blocks are mapped, and unmapped when freed
RETAINED, PADDING = 2**28, 2**26  # bytes that an arena may retain unused, and that it allocates at least
TRIM_INTERVAL = 30.0  # seconds


def serve(settings: ServiceSettings, listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM; running requests may then finish within `settings.grace`."""
    os.environ[VARIABLE] = write_settings(settings)
    config = uvicorn.Config(
        f"{__name__}:make_app",
        factory=True,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,  # app.py believes trusted proxies only
        http=LimitedProtocol,
        ws="none",
        workers=settings.processes,
        timeout_worker_healthcheck=UNRESPONSIVE,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(settings.grace),
        limit_concurrency=2 * (CONNECTIONS + settings.slots),  # connection_limits.py keeps below it
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    raise_file_limit()
    for number in STOP:  # uvicorn raises the signal again after it has stopped: exit without a traceback
        signal.signal(number, lambda *_: sys.exit(0))
    if settings.processes == 1:
        uvicorn.Server(config).run(sockets=[listener])
        return
    with contextlib.ExitStack() as stack:
        os.environ[metrics.FOLDER] = stack.enter_context(tempfile.TemporaryDirectory(prefix="resight-metrics-"))
        Multiprocess(config, sockets=[listener]).run()


def make_app() -> FastAPI:
    """The app of one server process."""
    limit_retained_memory()
    sys.setswitchinterval(SWITCH)
    settings = read_settings(os.environ[VARIABLE])
    configure_logging(settings.log)
    connection_limits.configure(choose_limits(settings))
    app = create_app(settings)
    if settings.processes > 1:
        threading.Thread(target=_follow_parent, args=(os.getppid(),), name="parent", daemon=True).start()
    stopping: threading.Event = app.state.service.stopping
    for number in STOP:
        signal.signal(number, _notify_first(stopping, 2 * settings.grace, signal.getsignal(number)))
    return app


def choose_limits(settings: ServiceSettings) -> ConnectionLimits:
    return ConnectionLimits(
        total=CONNECTIONS + settings.slots,
        per_address=settings.connections,
        per_loopback=max(PER_LOOPBACK, settings.connections),
        trusted_proxies=settings.trusted_proxies,
        request=MAX_REQUEST + settings.max_upload_bytes / MIN_SPEED,
    )


def raise_file_limit() -> None:
    """Allow more open files than the usual 1,024: each connection takes one."""
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def listen(host: str, port: int) -> socket.socket:
    """Bind an exclusive socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio disables Nagle's delay of small packets: 40 ms per response.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if os.name != "nt":  # on Windows it would let two servers share a port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise InputError(
            f"cannot listen on {host} port {port}",
            expected="an address of this machine and a free port",
            actual=error.strerror or str(error),
            fix="choose another with --port; --port 0 takes any free one",
        ) from error
    listener.listen(BACKLOG)
    return listener


def limit_retained_memory(interval: float = TRIM_INTERVAL) -> bool:
    """Cap what glibc retains, and trim it periodically. Call it before threads start; false without glibc."""
    library: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is None or not hasattr(library, "mallopt"):
        return False
    options = ((ARENA_MAX, ARENAS), (MMAP_THRESHOLD, LARGE), (TRIM_THRESHOLD, RETAINED), (TOP_PAD, PADDING))
    accepted = [library.mallopt(option, value) for option, value in options]
    threading.Thread(target=_trim, args=(library, interval), name="malloc-trim", daemon=True).start()
    return all(accepted)


def _trim(library: Any, interval: float) -> None:
    while True:
        time.sleep(interval)
        library.malloc_trim(0)


def _follow_parent(parent: int) -> None:
    """Stop when the parent process has ended, even by SIGKILL: this process would hold the port for ever."""
    while os.getppid() == parent:
        time.sleep(PARENT_INTERVAL)
    os.kill(os.getpid(), signal.SIGTERM)


def _notify_first(stopping: threading.Event, patience: float, then: object) -> Callable[[int, FrameType | None], None]:
    """A signal handler: notifies the service, then calls the previous handler. Work that hangs is abandoned."""

    def handle(number: int, frame: FrameType | None) -> None:
        stopping.set()
        last = threading.Timer(patience, os._exit, [1])
        last.daemon = True
        last.start()
        if callable(then):
            then(number, frame)

    return handle
