"""A key once given → a cookie that stands for it, signed and with an end. No list of sessions is kept.

How often one client may ask: a bucket of tokens each, filled steadily. The clients asked last are remembered.

Who may pass: the Host and Origin of a request, its key or session, and how often it comes.

Refusals are raised; `tracing` answers them. What is behind finds the `Caller` in `request.state.caller`.
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
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from resight.apps.service.api_keys import Caller, Key, find_key
from resight.apps.service.error_responses import Refusal
from resight.apps.service.settings import LOOPBACK, ServiceSettings

COOKIE = "resight_session"
LIFETIME = 12 * 3600  # seconds


def sign(key: Key, secret: str, now: float | None = None) -> str:
    """The value of the cookie. It holds a part of the key's digest, so that it ends when the key is replaced."""
    content = json.dumps([key.name, key.digest[:16], int((time.time() if now is None else now) + LIFETIME)]).encode()
    return f"{_to_text(content)}.{_to_text(_seal(content, secret))}"


def verify(value: str, secret: str, keys: Sequence[Key], now: float | None = None) -> Key | None:
    """The key that a cookie stands for; None when it is forged, has ended, or the key is no more."""
    content, _, seal = value.partition(".")
    try:
        data, given = _to_bytes(content), _to_bytes(seal)
    except (ValueError, binascii.Error):
        return None
    if not hmac.compare_digest(given, _seal(data, secret)):
        return None
    name, digest, end = json.loads(data)  # ours, by its seal
    if end < (time.time() if now is None else now):
        return None
    return next((key for key in keys if key.name == name and key.digest.startswith(digest)), None)


def _seal(content: bytes, secret: str) -> bytes:
    return hmac.digest(secret.encode(), b"session:" + content, hashlib.sha256)


def _to_text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _to_bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))


REMEMBERED = 10_000  # clients
BURST = 10  # seconds' worth that may come at once: a page asks for many pictures together


class RateLimit:
    def __init__(self, rate: float) -> None:
        """`rate`: requests a second; 0: no limit."""
        self.rate = rate
        self._most = max(1.0, rate * BURST)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client → tokens, when

    def take(self, client: str, now: float | None = None) -> float:
        """0, or the seconds until this client may ask again."""
        if not self.rate:
            return 0.0
        now = time.monotonic() if now is None else now
        tokens, before = self._buckets.pop(client, (self._most, now))
        tokens = min(self._most, tokens + (now - before) * self.rate)
        allowed = tokens >= 1
        self._buckets[client] = (tokens - 1 if allowed else tokens, now)
        while len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - tokens) / self.rate


SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
OPEN = frozenset({"/", "/favicon.ico", "/api/health", "/api/session", "/api/openapi.json"})  # without a key
OPEN_BELOW = "/assets/"


class Guard:
    """Around the app."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self._app = app
        self._settings = settings
        self._rate = RateLimit(settings.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            connection = HTTPConnection(scope)
            check_host(connection.headers, self._settings)
            check_origin(scope["method"], connection.headers, self._settings)
            caller = identify(connection, self._settings)
            self._count(connection, caller)
            scope.setdefault("state", {})["caller"] = caller
            if caller is None and not _is_open(scope["path"]):
                raise Refusal(
                    401,
                    "a key is needed",
                    expected="Authorization: Bearer KEY, or X-API-Key: KEY",
                    actual="no key, or one that is not known",
                    fix="ask whoever runs this service for a key",
                    headers={"WWW-Authenticate": "Bearer"},
                )
        await self._app(scope, receive, send)

    def _count(self, connection: HTTPConnection, caller: Caller | None) -> None:
        address = connection.client.host if connection.client else ""
        waiting = self._rate.take(f"key {caller.name}" if caller and caller.name else f"address {address}")
        if waiting:
            raise Refusal(
                429,
                "too many requests",
                expected=f"at most {self._settings.rate:g} requests a second",
                fix="try again after the seconds in Retry-After",
                retry_after=waiting,
            )


def identify(connection: HTTPConnection, settings: ServiceSettings) -> Caller | None:
    """None: nobody that is known, where a key is needed."""
    if not settings.keys:
        return Caller(may_write=not settings.read_only)
    key = _find_key(connection, settings)
    return Caller(key.name, key.may_write and not settings.read_only) if key else None


def check_may_write(request: Request) -> Caller:
    """The caller, or a 403 where it may not change anything."""
    caller: Caller = request.state.caller
    if not caller.may_write:
        raise Refusal(
            403,
            "nothing may be changed here",
            expected="a key that may write, and a service that is not read-only",
            actual="read only",
            fix="ask whoever runs this service",
        )
    return caller


def check_host(headers: Headers, settings: ServiceSettings) -> None:
    """Without keys, only names of this machine: a page elsewhere may have its own name point here."""
    if settings.keys:
        return
    name = _strip_port(headers.get("host", ""))
    if name not in LOOPBACK and name not in settings.allow_hosts:
        raise Refusal(
            403,
            "this service does not go by that name",
            expected="localhost, 127.0.0.1 or a name given with --allow-host",
            actual=name[:80],
            fix="use one of these names",
        )


def check_origin(method: str, headers: Headers, settings: ServiceSettings) -> None:
    """A page of another site may not send anything that changes or costs something."""
    origin = headers.get("origin")
    if method in SAFE or origin is None or origin in settings.cors:
        return
    if _read_host(origin) != headers.get("host", "").lower():
        raise Refusal(
            403,
            "requests from pages of other sites are refused",
            expected="the page of this service, or an origin given with --cors",
            actual=origin[:80],
            fix="call the service from its own page, or from a program",
        )


def _read_host(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _find_key(connection: HTTPConnection, settings: ServiceSettings) -> Key | None:
    kind, _, text = connection.headers.get("authorization", "").partition(" ")
    given = text.strip() if kind.lower() == "bearer" else connection.headers.get("x-api-key", "")
    if given:
        return find_key(settings.keys, given)
    cookie = connection.cookies.get(COOKIE, "")
    return verify(cookie, settings.secret, settings.keys) if cookie else None


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith(OPEN_BELOW)


def _strip_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
