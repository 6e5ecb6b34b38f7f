"""The limits on bodies, with an app that reads all it gets."""

import asyncio
from collections.abc import Iterable

import pytest
from starlette.types import Message, Receive, Scope, Send

from resight.apps.service.body_limit import BodyLimit, FormLimit
from resight.apps.service.error_responses import ApiError

FORM = (b"content-type", b"multipart/form-data; boundary=x")


async def read_all(_: Scope, receive: Receive, send: Send) -> None:
    size = 0
    more = True
    while more:
        try:
            message = await receive()
        except ApiError:
            await send({"type": "http.response.start", "status": 400, "headers": []})  # as a parser would
            return
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


def post(
    pieces: Iterable[bytes], headers: tuple[tuple[bytes, bytes], ...] = (FORM,), pause: float = 0.0, grace: float = 5.0
) -> list[Message]:
    """What the app sent; a body comes in pieces, `pause` seconds apart."""
    sent: list[Message] = []
    coming = list(pieces)

    async def receive() -> Message:
        await asyncio.sleep(pause)
        body = coming.pop(0) if coming else b""
        return {"type": "http.request", "body": body, "more_body": bool(coming)}

    async def send(message: Message) -> None:
        sent.append(message)

    app = BodyLimit(read_all, max_bytes=100, grace=grace)
    asyncio.run(app({"type": "http", "headers": headers}, receive, send))
    return sent


def test_a_body_within_the_limit_passes() -> None:
    assert post([b"x" * 60, b"x" * 40])[-1]["body"] == b"100"


def test_a_body_is_counted_while_it_comes() -> None:
    with pytest.raises(ApiError) as caught:
        post([b"x" * 60, b"x" * 41, b"never read"])
    assert caught.value.status == 413


def test_a_length_that_is_too_large_is_refused_before_anything_is_read() -> None:
    with pytest.raises(ApiError) as caught:
        post([b""], (FORM, (b"content-length", b"101")))
    assert caught.value.status == 413


def test_a_body_that_trickles_is_refused() -> None:
    with pytest.raises(ApiError) as caught:
        post([b"x"] * 20, pause=0.05, grace=0.12)
    assert caught.value.status == 408


def test_more_forms_at_once_than_allowed_are_told_to_come_back() -> None:
    async def wait(_: Scope, receive: Receive, __: Send) -> None:
        await receive()
        await asyncio.sleep(0.1)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_: Message) -> None: ...

    async def post_three() -> list[int]:
        app = FormLimit(wait, at_once=2)
        calls = [app({"type": "http", "headers": (FORM,)}, receive, send) for _ in range(3)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        return [outcome.status if isinstance(outcome, ApiError) else 200 for outcome in outcomes]

    assert asyncio.run(post_three()) == [200, 200, 429]


def test_a_rejected_form_takes_no_slot() -> None:
    """A stranger's form is read for a moment after the refusal, and a friend's is let in meanwhile."""

    async def wait(_: Scope, __: Receive, ___: Send) -> None:
        await asyncio.sleep(0.01)

    forms = FormLimit(wait, at_once=1)

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "stranger":
            raise ApiError(401, "a key is needed")
        await forms(scope, receive, send)

    async def never_comes() -> Message:
        await asyncio.sleep(60)
        raise AssertionError

    async def send(_: Message) -> None: ...

    async def post_both() -> list[object]:
        app = BodyLimit(guard, max_bytes=100)
        paths = ("stranger", "stranger", "friend")
        calls = [app({"type": "http", "path": path, "headers": (FORM,)}, never_comes, send) for path in paths]
        return await asyncio.gather(*calls, return_exceptions=True)

    outcomes = asyncio.run(post_both())
    assert [getattr(outcome, "status", 200) for outcome in outcomes] == [401, 401, 200]
