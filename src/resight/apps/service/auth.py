"""Access control of every request: its Host and Origin, its key or session, and its rate.

A rejected request raises an ApiError. Routes find the `Caller` in `request.state.caller`. A session is a signed cookie
that stands for a key until it expires; the service stores no list of sessions.
"""

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections import OrderedDict
from collections.abc import Sequence
from urllib.parse import urlsplit

from fastapi import Request
from starlette.datastructures import Headers
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from resight.apps.service.api_keys import Caller, Key, find_key
from resight.apps.service.error_responses import ASK_ADMINISTRATOR, ApiError
from resight.apps.service.settings import LOOPBACK, ServiceSettings

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
OPEN = frozenset({"/", "/favicon.ico", "/api/health", "/api/session", "/api/openapi.json"})  # without a key
OPEN_BELOW = "/assets/"
COOKIE = "resight_session"
LIFETIME = 12 * 3600  # seconds
REMEMBERED = 10_000  # clients whose rate is counted
BURST = 10  # seconds' worth of requests at once: a page loads many thumbnails together


class AuthMiddleware:
    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self._app = app
        self._settings = settings
        self._hosts = HostCheck(settings)
        self._rate = RateLimit(settings.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            connection = HTTPConnection(scope)
            await self._hosts.check(scope)
            check_origin(scope["method"], connection.headers, self._settings)
            caller = identify(connection, self._settings)
            self._check_rate(connection, caller)
            scope.setdefault("state", {})["caller"] = caller
            if caller is None and not _is_open(scope["path"]):
                raise ApiError(
                    401,
                    "an access key is required",
                    expected="Authorization: Bearer KEY, or X-API-Key: KEY",
                    actual="no key, or a wrong one",
                    fix=ASK_ADMINISTRATOR,
                    headers={"WWW-Authenticate": "Bearer"},
                )
        await self._app(scope, receive, send)

    def _check_rate(self, connection: HTTPConnection, caller: Caller | None) -> None:
        address = connection.client.host if connection.client else ""
        seconds = self._rate.take(f"key {caller.name}" if caller and caller.name else f"address {address}")
        if seconds:
            raise ApiError(
                429,
                "too many requests",
                expected=f"at most {self._settings.rate:g} requests per second",
                fix="try again after the seconds in Retry-After",
                retry_after=seconds,
            )


class HostCheck:
    """Without keys, the service accepts only its own host names: it is then safe from DNS rebinding."""

    def __init__(self, settings: ServiceSettings) -> None:
        own = [*LOOPBACK, *settings.allow_hosts]
        names = ["*"] if settings.keys else [f"[{name}]" if ":" in name else name for name in own]
        self._trusted = TrustedHostMiddleware(_accept, names, www_redirect=False)

    async def check(self, scope: Scope) -> None:
        """A 403 for an unknown Host."""

        async def reject(_: Message) -> None:
            raise ApiError(
                403,
                "unknown host name",
                expected="localhost, 127.0.0.1 or a name given with --allow-host",
                actual=Headers(scope=scope).get("host", "")[:80],
                fix="use one of these names",
            )

        await self._trusted(scope, _receive_nothing, reject)


class RateLimit:
    """A token bucket per client."""

    def __init__(self, rate: float) -> None:
        """`rate`: requests per second; 0: no limit."""
        self.rate = rate
        self._capacity = max(1.0, rate * BURST)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client → tokens, time

    def take(self, client: str, now: float | None = None) -> float:
        """0, or the seconds until this client may send its next request."""
        if not self.rate:
            return 0.0
        now = time.monotonic() if now is None else now
        tokens, before = self._buckets.pop(client, (self._capacity, now))
        tokens = min(self._capacity, tokens + (now - before) * self.rate)
        allowed = tokens >= 1
        self._buckets[client] = (tokens - 1 if allowed else tokens, now)
        while len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - tokens) / self.rate


def check_origin(method: str, headers: Headers, settings: ServiceSettings) -> None:
    """A 403 for requests of other sites' pages that change or cost something."""
    origin = headers.get("origin")
    if method in SAFE or origin is None or origin in settings.cors:
        return
    if _read_host(origin) != headers.get("host", "").lower():
        raise ApiError(
            403,
            "cross-site request blocked",
            expected="the page of this service, or an origin given with --cors",
            actual=origin[:80],
            fix="call the service from its own page, or from a program",
        )


def identify(connection: HTTPConnection, settings: ServiceSettings) -> Caller | None:
    """Who sends the request; None for an unknown client where a key is required."""
    if not settings.keys:
        return Caller(may_write=not settings.read_only)
    key = _find_key(connection, settings)
    return Caller(key.name, key.may_write and not settings.read_only) if key else None


def require_write_access(request: Request) -> Caller:
    """A dependency of routes that change something: the caller, or a 403."""
    caller: Caller = request.state.caller
    if not caller.may_write:
        raise ApiError(
            403,
            "read-only access",
            expected="a key with write access, and a service without --read-only",
            actual="read-only",
            fix=ASK_ADMINISTRATOR,
        )
    return caller


def sign_session(key: Key, secret: str, now: float | None = None) -> str:
    """The cookie for a key. It contains part of the key's digest, so that it ends when the key is replaced."""
    content = json.dumps([key.name, key.digest[:16], int((time.time() if now is None else now) + LIFETIME)]).encode()
    return f"{_to_text(content)}.{_to_text(_seal(content, secret))}"


def verify_session(value: str, secret: str, keys: Sequence[Key], now: float | None = None) -> Key | None:
    """The key of a cookie; None where the cookie is forged or expired, or the key was removed."""
    content, _, seal = value.partition(".")
    try:
        data, given = _to_bytes(content), _to_bytes(seal)
    except (ValueError, binascii.Error):
        return None
    if not hmac.compare_digest(given, _seal(data, secret)):
        return None
    name, digest, end = json.loads(data)  # the seal proves that this service wrote it
    if end < (time.time() if now is None else now):
        return None
    return next((key for key in keys if key.name == name and key.digest.startswith(digest)), None)


def _find_key(connection: HTTPConnection, settings: ServiceSettings) -> Key | None:
    kind, _, text = connection.headers.get("authorization", "").partition(" ")
    given = text.strip() if kind.lower() == "bearer" else connection.headers.get("x-api-key", "")
    if given:
        return find_key(settings.keys, given)
    cookie = connection.cookies.get(COOKIE, "")
    return verify_session(cookie, settings.secret, settings.keys) if cookie else None


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith(OPEN_BELOW)


def _read_host(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


async def _accept(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """The app behind the host check: nothing, since AuthMiddleware goes on by itself."""


async def _receive_nothing() -> Message:
    return {"type": "http.disconnect"}


def _seal(content: bytes, secret: str) -> bytes:
    return hmac.digest(secret.encode(), b"session:" + content, hashlib.sha256)


def _to_text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _to_bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
