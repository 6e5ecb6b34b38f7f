"""Limits on request bodies, counted while they arrive: size, speed, and the number of forms at once.

A rejected body is read for a moment longer and discarded: a client that is still writing would otherwise see a broken
connection in place of the response. Draining holds no slot.
"""

import asyncio
import contextlib
import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from resight.apps.service.error_responses import ApiError

SMALL = 2**20  # bytes of a body that is not a form
GRACE = 15.0  # seconds before the minimum speed applies
MIN_SPEED = 20_000  # bytes per second
LINGER = 2.0  # seconds of draining


class BodyLimit:
    """Middleware: the app never sees more than `max_bytes` of a form, nor of a body that arrives too slowly."""

    def __init__(self, app: ASGIApp, max_bytes: int, grace: float = GRACE) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._grace = grace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        body = _Body(receive, self._max_bytes if _is_form(scope) else SMALL, self._grace)
        try:
            length = Headers(scope=scope).get("content-length", "")
            if length.isdecimal() and int(length) > body.max_bytes:
                raise _too_large(body.max_bytes, int(length))
            await self._app(scope, body.receive, body.guard(send))
            if body.error is not None:
                raise body.error
        except ApiError:
            await body.drain()
            raise
        return None


class FormLimit:
    """Middleware behind authentication: at most `at_once` forms are in progress."""

    def __init__(self, app: ASGIApp, at_once: int) -> None:
        self._app = app
        self._at_once = at_once
        self._forms = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _is_form(scope):
            return await self._app(scope, receive, send)
        if self._forms >= self._at_once:
            raise ApiError(
                429,
                "too many uploads at once",
                expected=f"at most {self._at_once} at once",
                fix="try again after the seconds in Retry-After",
                retry_after=1,
            )
        self._forms += 1
        try:
            return await self._app(scope, receive, send)
        finally:
            self._forms -= 1


class _Body:
    """One body as it arrives. It remembers its error, since the form parser that it interrupts reports another one."""

    def __init__(self, receive: Receive, max_bytes: int, grace: float) -> None:
        self.max_bytes = max_bytes
        self.error: ApiError | None = None
        self._receive = receive
        self._grace = grace
        self._begin = time.monotonic()
        self._received = 0
        self._is_complete = False

    async def receive(self) -> Message:
        if self._is_complete:
            return await self._receive()
        seconds_left = self._grace + self._received / MIN_SPEED - (time.monotonic() - self._begin)
        try:
            message = await asyncio.wait_for(self._next(), max(0.0, seconds_left))
        except TimeoutError:
            self.error = self._too_slow()
            raise self.error from None
        if self._received > self.max_bytes:
            self.error = _too_large(self.max_bytes, self._received)
            raise self.error
        return message

    def guard(self, send: Send) -> Send:
        """A `send` that sends nothing once the body was rejected."""

        async def send_unless_rejected(message: Message) -> None:
            if self.error is None:
                await send(message)

        return send_unless_rejected

    async def drain(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER):
                while not self._is_complete:
                    await self._next()

    async def _next(self) -> Message:
        message = await self._receive()
        self._received += len(message.get("body", b""))
        self._is_complete = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    def _too_slow(self) -> ApiError:
        return ApiError(
            408,
            "the request arrived too slowly",
            expected=f"at least {MIN_SPEED // 1000} kB per second",
            actual=f"{self._received:,} bytes in {time.monotonic() - self._begin:.0f} s",
            fix="send it again over a faster connection, or reduce the image",
        )


def _is_form(scope: Scope) -> bool:
    return Headers(scope=scope).get("content-type", "").startswith("multipart/form-data")


def _too_large(limit: int, actual: int) -> ApiError:
    return ApiError(
        413,
        "the request is too large",
        expected=f"at most {limit:,} bytes",
        actual=f"{actual:,} bytes or more",
        fix="reduce the image, or send fewer at once",
    )
