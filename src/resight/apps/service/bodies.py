"""How large a body may be, how slowly it may come, and how many forms at once: counted while they arrive.

A body that is refused is still read for a moment, and thrown away: a client that is writing would else see a broken
connection in place of the answer. That costs nobody a place: only those who may ask at all are counted.
"""

import asyncio
import contextlib
import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from resight.apps.service.refusals import Refusal

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
