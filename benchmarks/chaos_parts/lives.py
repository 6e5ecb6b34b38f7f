"""What runs in the processes that are cut off: a writer of a store, a reader of it, a service."""

import json
import signal
import sys
from itertools import count
from pathlib import Path

import numpy as np
import uvicorn  # noqa: F401 - forked processes have it

from resight.apps.cli import main as run_command
from resight.apps.service import app  # noqa: F401 - as above
from resight.store import ImageRecord, Layout, Record, lance
from resight.types import Descriptors

ROWS = 50
LIFE = 7000  # numbers that a writer may use before it is cut off
COMPACTING = 8  # writes between two compactions; each life begins at another of them


def write(folder: str, first: int) -> None:
    """Append, replace, delete and compact without end; a line tells of every change that has returned."""
    store = lance.build(lance.Config(Path(folder), (Layout("uint8", 128),)))
    for number in count(first + 1):
        step = number % 7
        if step == 5:
            name = f"{number - 5}-0"
            print("try", name, 0, flush=True)
            store.write([make(name, number % 251)])
            print("put", name, number % 251, flush=True)
        elif step == 6:
            name = f"{number - 5}-1"
            print("try", name, 0, flush=True)
            store.remove([name])
            print("gone", name, 0, flush=True)
        else:
            store.write([make(f"{number}-{i}", number % 251) for i in range(4)])
            for i in range(4):
                print("put", f"{number}-{i}", number % 251, flush=True)
        if number % COMPACTING == first // LIFE % COMPACTING:
            store.compact()


def make(id: str, value: int) -> Record:
    image = ImageRecord(id, Path("/photos/x.jpg"), "0" * 64, 1, 1, (1, 1), {"value": value})
    return Record(image, (Descriptors((id,), np.full((ROWS, 128), value, np.uint8), np.zeros(ROWS, np.int32)),))


def check(folder: str) -> None:
    """Print id → value of everything that is stored, -1 where it is not as it was written; or why it does not open."""
    try:
        store = lance.build(lance.Config(Path(folder)))
        found = {}
        for part in store.descriptors(0):
            for owner, name in enumerate(part.ids):
                rows = part.vectors[part.owners == owner]
                found[name] = int(rows[0, 0]) if len(rows) == ROWS and (rows == rows[0, 0]).all() else -1
        print(json.dumps(found), flush=True)
    except BaseException as error:
        print(f"error: {type(error).__name__}: {error}".replace("\n", " "), flush=True)
        raise


def serve(*words: str) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    sys.argv = ["resight", "serve", *words]
    run_command()
