"""Messages of the service itself, beside the lines of requests: as text, as JSON or not at all."""

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime

REQUEST: ContextVar[str] = ContextVar("request", default="")  # the id of the request that is being answered


def set_up(kind: str) -> None:
    """For a process that is a server: warnings and errors of resight go to stderr, in the way of the request lines."""
    handler = logging.NullHandler() if kind == "none" else logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if kind == "json" else TextFormatter("%(levelname)s %(message)s"))
    logger = logging.getLogger("resight")
    logger.handlers = [handler]
    logger.propagate = False


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        request = REQUEST.get()
        return f"{request} {super().format(record)}" if request else super().format(record)


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        trace = {"trace": self.formatException(record.exc_info)} if record.exc_info else {}
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        request = {"request_id": REQUEST.get()} if REQUEST.get() else {}
        said = {"level": record.levelname.lower(), "message": record.getMessage()}
        return json.dumps({"time": time, **request, **said, **trace})
