"""Memory that a search has freed: kept for the next one, and given back to the system before it becomes much.

glibc keeps what threads free in up to eight pools a core. Where many threads work on large arrays now and then, that is
several times what is in use. Where all of it goes back at once, every search fetches a hundred megabytes anew, page by
page, which was a third of the time of describing its image. So there are few pools, each keeps what one search needs,
and every so often all that is free goes back. Elsewhere (musl, macOS, Windows) nothing is set.

Settings in, a running server until it is told to stop: one process, or several that share the socket.

Several processes each make the app from the settings in an environment variable. The index files are mapped, so that
their memory is there once.
"""

import ctypes
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from resight.apps.service import middleware
from resight.apps.service.app import create_app
from resight.apps.service.settings import VARIABLE, ServiceSettings, read_settings, write_settings
from resight.errors import InputError

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD, ARENA_MAX = -1, -2, -3, -8  # of mallopt(3)
POOLS = 2
LARGE = 2**25  # bytes, the most that glibc accepts: larger pieces come from the system, and go back when they are freed
KEPT, SPARE = 2**28, 2**26  # bytes that a pool may hold unused, and that it takes and keeps at the least
EVERY = 30.0  # seconds


def bound_freed_memory(every: float = EVERY) -> bool:
    """Before the threads of this process start; false where it cannot be done."""
    library: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is None or not hasattr(library, "mallopt"):
        return False
    settings = ((ARENA_MAX, POOLS), (MMAP_THRESHOLD, LARGE), (TRIM_THRESHOLD, KEPT), (TOP_PAD, SPARE))
    accepted = [library.mallopt(option, value) for option, value in settings]
    threading.Thread(target=_give_back, args=(library, every), name="memory", daemon=True).start()
    return all(accepted)


def _give_back(library: Any, every: float) -> None:
    while True:
        time.sleep(every)
        library.malloc_trim(0)


STOP = (signal.SIGINT, signal.SIGTERM)
KEEP_ALIVE = 15  # seconds
BACKLOG = 512
PARENT_EVERY = 0.5  # seconds
SWITCH = 0.0005  # seconds: a search hands over to the threads of LanceDB some ten times, and each waits that long
CONNECTIONS = 800  # beside those that search, a process; more are turned away at once


def serve(settings: ServiceSettings, listener: socket.socket) -> None:
    """Until SIGINT or SIGTERM; what runs may end within `settings.grace`."""
    os.environ[VARIABLE] = write_settings(settings)
    config = uvicorn.Config(
        f"{__name__}:make_app",
        factory=True,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        workers=settings.processes,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(settings.grace),
        limit_concurrency=CONNECTIONS + settings.places,
    )
    for number in STOP:  # uvicorn repeats the signal when it has stopped: leave without a fuss
        signal.signal(number, lambda *_: sys.exit(0))
    if settings.processes == 1:
        uvicorn.Server(config).run(sockets=[listener])
    else:
        Multiprocess(config, sockets=[listener]).run()


def make_app() -> FastAPI:
    """In each process of a server."""
    bound_freed_memory()
    sys.setswitchinterval(SWITCH)
    settings = read_settings(os.environ[VARIABLE])
    middleware.set_up(settings.log)
    app = create_app(settings)
    if settings.processes > 1:
        threading.Thread(target=_follow_parent, args=(os.getppid(),), name="parent", daemon=True).start()
    stopping: threading.Event = app.state.service.stopping
    for number in STOP:
        signal.signal(number, _tell_first(stopping, 2 * settings.grace, signal.getsignal(number)))
    return app


def _follow_parent(parent: int) -> None:
    """Stop when whoever started us is gone, killed even: nobody would free the port that we hold."""
    while os.getppid() == parent:
        time.sleep(PARENT_EVERY)
    os.kill(os.getpid(), signal.SIGTERM)


def _tell_first(stopping: threading.Event, patience: float, then: object) -> Callable[[int, FrameType | None], None]:
    """A signal handler: tells the service, and then what handled the signal until now. Work that hangs is left."""

    def handle(number: int, frame: FrameType | None) -> None:
        stopping.set()
        last = threading.Timer(patience, os._exit, [1])
        last.daemon = True
        last.start()
        if callable(then):
            then(number, frame)

    return handle


def listen(host: str, port: int) -> socket.socket:
    """A socket that nobody else has."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio turns off the delay of small packets: 40 ms for each answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if os.name != "nt":  # there it would let two servers have one port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise InputError(
            f"cannot listen on {host} port {port}",
            expected="an address of this machine and a port that is free",
            actual=error.strerror or str(error),
            fix="choose another with --port; --port 0 takes any that is free",
        ) from error
    listener.listen(BACKLOG)
    return listener
