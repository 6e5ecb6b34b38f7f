"""What Qdrant, its client and its files raise → errors that say what to do."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from resight.errors import ClusterError, CollectionBusy, CollectionError, StorageError

KEY = "RESIGHT_QDRANT_KEY"
REFUSED = (401, 403)


@contextmanager
def telling_server(url: str) -> Iterator[None]:
    """Around calls of the client that go to a server."""
    from httpx import HTTPError
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    try:
        yield
    except UnexpectedResponse as error:
        raise tell_status(url, error.status_code or 0, error.content.decode("utf-8", "replace")) from error
    except (ResponseHandlingException, HTTPError) as error:
        raise ClusterError(
            f"the Qdrant server at {url} does not answer",
            expected="an answer over HTTP",
            actual=f"{type(error).__name__}: {error}",
            fix="check the address and the port, and whether the server runs; what was uploaded is kept",
        ) from error


def tell_status(url: str, status: int, said: str) -> ClusterError:
    if status in REFUSED:
        return ClusterError(
            f"the Qdrant server at {url} refuses the key",
            expected=f"a key that it knows, in the environment variable {KEY}",
            actual=f"HTTP {status}",
            fix=f"set {KEY}, or name another variable",
        )
    return ClusterError(
        f"the Qdrant server at {url} refuses what it was asked",
        expected="a Qdrant server, version 1.10 or later",
        actual=f"HTTP {status}: {said[:300]}",
        fix="check the address, and what the server says",
    )


@contextmanager
def telling_folder(folder: Path) -> Iterator[None]:
    """Around calls that read or write the files of the client's local mode."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"the files in {folder} cannot be read or written",
            expected="a folder that may be written to, with space left",
            actual=str(error),
            fix="check the disk and the permissions, and do it again",
        ) from error
    except (sqlite3.Error, UnpicklingError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise tell_damaged(folder, error) from error


def tell_busy(folder: Path, error: Any) -> CollectionBusy:
    return CollectionBusy(
        f"another process has {folder} open",
        expected="one process at a time: more need a server",
        actual=str(error).partition("\n")[0],
        fix="wait for the other one, or end it",
    )


def tell_damaged(folder: Path, error: Any) -> CollectionError:
    return CollectionError(
        f"the Qdrant files in {folder} cannot be read",
        expected="files as Qdrant wrote them",
        actual=f"{type(error).__name__}: {str(error).partition(chr(10))[0]}",
        fix="remove the folder and export the collection again",
    )
