"""The outermost middleware: request ids, one log line and metrics per request, security headers, error responses.

It also configures the log of a server process: the service's own messages have the same form as the request lines, text
or JSON.
"""

import json
import logging
import re
import secrets
import sys
import time
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from resight.apps.service.error_responses import respond_to_error
from resight.apps.service.metrics import Metrics

REQUEST: ContextVar[str] = ContextVar("request", default="")  # id of the current request
VALID_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class RequestLogging:
    def __init__(self, app: ASGIApp, metrics: Metrics, log: str) -> None:
        """`log`: text, json or none."""
        self._app = app
        self._metrics = metrics
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        begin = time.monotonic()
        request_id = choose_id(Headers(scope=scope).get("x-request-id", ""))
        scope.setdefault("state", {})["request_id"] = request_id
        REQUEST.set(request_id)
        response = _Response(send, request_id)
        try:
            await self._app(scope, receive, response.send)
        except Exception as error:  # nothing outside of this can answer; errors of the inner middleware arrive here too
            body = respond_to_error(error, request_id)
            if not response.status:
                await body(scope, receive, response.send)
        finally:
            seconds = time.monotonic() - begin
            route = getattr(scope.get("route"), "path", "") or "unmatched"
            self._metrics.observe(_name_method(scope), route, response.status, seconds)
            self._write(scope, request_id, route, response, seconds)
        return None

    def _write(self, scope: Scope, request_id: str, route: str, response: "_Response", seconds: float) -> None:
        if self._log == "none":
            return
        caller = scope["state"].get("caller")
        fields: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "request_id": request_id,
            "method": _name_method(scope),
            "route": route,
            "status": response.status,
            "milliseconds": round(1000 * seconds, 1),
            "client": (scope.get("client") or ("",))[0],
            "key": caller.name if caller else "",
            "bytes": response.bytes,
        }
        line = json.dumps(fields) if self._log == "json" else " ".join(str(value) or "-" for value in fields.values())
        print(line, file=sys.stderr, flush=True)


class _Response:
    """Adds headers to one response, and records its status and size."""

    def __init__(self, send: Send, request_id: str) -> None:
        self.status = 0
        self.bytes = 0
        self._send = send
        self._request_id = request_id

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-ID"] = self._request_id
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        self.bytes += len(message.get("body", b""))
        await self._send(message)


def choose_id(given: str) -> str:
    """The client's own request id where it is valid, else a new one."""
    return given if VALID_ID.fullmatch(given) else secrets.token_hex(8)


def _name_method(scope: Scope) -> str:
    """The method, or OTHER: clients may send any word, and logs and metrics take the known ones only."""
    method: str = scope["method"]
    return method if method in METHODS else "OTHER"


def configure_logging(kind: str) -> None:
    """Send resight's warnings and errors to stderr, as text, json or none."""
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
        message = {"level": record.levelname.lower(), "message": record.getMessage()}
        return json.dumps({"time": time, **request, **message, **trace})
