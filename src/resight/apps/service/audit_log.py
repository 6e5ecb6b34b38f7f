"""The audit log: one JSON line per change, with who, what, when, how many and the outcome.

    {"time": "…", "key": "anna", "address": "192.0.2.1", "request_id": "…", "action": "delete", "collection": "photos",
     "images": 2, "outcome": "done"}

The service opens the file for each line, so that the operator may move it away at any time (logrotate). It never logs
the content of requests.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from resight.apps.service.api_keys import CALLER, Caller
from resight.apps.service.request_logging import REQUEST
from resight.errors import ResightError, StorageError

log = logging.getLogger("resight.service")


@dataclass
class AuditEntry:
    """What is logged at the end; the block may correct the number of images."""

    images: int


class AuditLog:
    def __init__(self, path: Path | None) -> None:
        self._path = path

    def check(self) -> None:
        """Raises a StorageError where the file cannot be written."""
        if self._path is not None:
            try:
                with self._path.open("a", encoding="utf-8"):
                    pass
            except OSError as error:
                raise StorageError(
                    f"cannot write the audit log {self._path}",
                    expected="a writable file in an existing folder",
                    actual=str(error),
                    fix="check the path and its permissions",
                ) from error

    @contextmanager
    def record(self, action: str, collection: str, images: int = 1) -> Iterator[AuditEntry]:
        """Log a change when the block ends: `done`, or the problem that it raises."""
        entry = AuditEntry(images)
        try:
            yield entry
        except Exception as error:
            problem = error.problem if isinstance(error, ResightError) else "internal error"
            self._write(action, collection, entry.images, f"failed: {problem}")
            raise
        self._write(action, collection, entry.images, "done")

    def _write(self, action: str, collection: str, images: int, outcome: str) -> None:
        if self._path is None:
            return
        caller = CALLER.get() or Caller()
        fields = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "key": caller.name,
            "address": caller.address,
            "request_id": REQUEST.get(),
            "action": action,
            "collection": collection,
            "images": images,
            "outcome": outcome,
        }
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(fields) + "\n")  # one write: lines of several processes do not mix
        except OSError:
            log.exception("cannot write the audit log: %s", json.dumps(fields))
