"""Around everything: an id for each request, its line in the log and its metrics, security headers, errors answered."""

import json
import re
import secrets
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from resight.apps.service.logs import REQUEST
from resight.apps.service.metrics import Metrics
from resight.apps.service.refusals import answer_error

SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
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


class Tracing:
    def __init__(self, app: ASGIApp, metrics: Metrics, log: str) -> None:
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
        sent = _Sent(send, request_id)
        try:
            await self._app(scope, receive, sent.send)
        except Exception as error:  # the last place that can answer; refusals of the middle layers come here, too
            response = answer_error(error, request_id)
            if not sent.status:
                await response(scope, receive, sent.send)
        finally:
            seconds = time.monotonic() - begin
            route = getattr(scope.get("route"), "path", "") or "unmatched"
            self._metrics.observe(_name_method(scope), route, sent.status, seconds)
            self._write(scope, request_id, route, sent, seconds)
        return None

    def _write(self, scope: Scope, request_id: str, route: str, sent: "_Sent", seconds: float) -> None:
        if self._log == "none":
            return
        caller = scope["state"].get("caller")
        fields: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "request_id": request_id,
            "method": _name_method(scope),
            "route": route,
            "status": sent.status,
            "milliseconds": round(1000 * seconds, 1),
            "client": (scope.get("client") or ("",))[0],
            "key": caller.name if caller else "",
            "bytes": sent.bytes,
        }
        line = json.dumps(fields) if self._log == "json" else " ".join(str(value) or "-" for value in fields.values())
        print(line, file=sys.stderr, flush=True)


def choose_id(given: str) -> str:
    """The client's own where it is sane, else a new one."""
    return given if SANE_ID.fullmatch(given) else secrets.token_hex(8)


class _Sent:
    """A response on its way."""

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


def _name_method(scope: Scope) -> str:
    """Clients may write anything there; logs and metrics get the usual names only."""
    method: str = scope["method"]
    return method if method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH") else "OTHER"
