"""How large a body may be, how slowly it may come, and how many forms at once: counted while they arrive.

A body that is refused is still read for a moment, and thrown away: a client that is writing would else see a broken
connection in place of the answer. That costs nobody a place: only those who may ask at all are counted.

Messages of the service itself, beside the lines of requests: as text, as JSON or not at all.

Around everything: an id for each request, its line in the log and its metrics, security headers, errors answered.
"""

import asyncio
import contextlib
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

from resight.apps.service.error_responses import Refusal, answer_error
from resight.apps.service.metrics import Metrics

SMALL = 2**20  # bytes, for what is no form
GRACE = 15.0  # seconds
SLOWEST = 20_000  # bytes a second, beyond the grace
LINGER = 2.0  # seconds


class BodyLimit:
    """Around the app: it never sees more than the limit."""

    def __init__(self, app: ASGIApp, most: int, grace: float = GRACE) -> None:
        self._app = app
        self._most = most
        self._grace = grace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        body = _Body(receive, self._most if _is_form(scope) else SMALL, self._grace)
        try:
            length = Headers(scope=scope).get("content-length", "")
            if length.isdecimal() and int(length) > body.most:
                raise _refuse_size(body.most, int(length))
            await self._app(scope, body.receive, body.guard(send))
            if body.refusal is not None:
                raise body.refusal
        except Refusal:
            await body.drain()
            raise
        return None


class FormLimit:
    """Around the app, behind whoever asks for keys: so many forms may be under way."""

    def __init__(self, app: ASGIApp, at_once: int) -> None:
        self._app = app
        self._at_once = at_once
        self._forms = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _is_form(scope):
            return await self._app(scope, receive, send)
        if self._forms >= self._at_once:
            raise Refusal(
                429,
                "too many uploads at once",
                expected=f"at most {self._at_once} under way",
                fix="try again after the seconds in Retry-After",
                retry_after=1,
            )
        self._forms += 1
        try:
            return await self._app(scope, receive, send)
        finally:
            self._forms -= 1


class _Body:
    """A body on its way. A refusal is kept: the parser that it breaks would answer with another one."""

    def __init__(self, receive: Receive, most: int, grace: float) -> None:
        self.most = most
        self.refusal: Refusal | None = None
        self._receive = receive
        self._grace = grace
        self._begin = time.monotonic()
        self._received = 0
        self._is_whole = False

    async def receive(self) -> Message:
        if self._is_whole:
            return await self._receive()
        left = self._grace + self._received / SLOWEST - (time.monotonic() - self._begin)
        try:
            message = await asyncio.wait_for(self._next(), max(0.0, left))
        except TimeoutError:
            self.refusal = self._refuse_time()
            raise self.refusal from None
        if self._received > self.most:
            self.refusal = _refuse_size(self.most, self._received)
            raise self.refusal
        return message

    def guard(self, send: Send) -> Send:
        """Nothing is sent any more once the body was refused."""

        async def send_unless_refused(message: Message) -> None:
            if self.refusal is None:
                await send(message)

        return send_unless_refused

    async def drain(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER):
                while not self._is_whole:
                    await self._next()

    async def _next(self) -> Message:
        message = await self._receive()
        self._received += len(message.get("body", b""))
        self._is_whole = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    def _refuse_time(self) -> Refusal:
        return Refusal(
            408,
            "the request came too slowly",
            expected=f"{SLOWEST // 1000} kB or more a second",
            actual=f"{self._received:,} bytes in {time.monotonic() - self._begin:.0f} s",
            fix="send it again over a better line, or reduce the image",
        )


def _is_form(scope: Scope) -> bool:
    return Headers(scope=scope).get("content-type", "").startswith("multipart/form-data")


def _refuse_size(most: int, actual: int) -> Refusal:
    return Refusal(
        413,
        "the request is too large",
        expected=f"at most {most:,} bytes",
        actual=f"{actual:,} bytes or more",
        fix="reduce the image, or send fewer at once",
    )


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
