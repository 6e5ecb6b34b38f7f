"""Access control of every request: its Host and Origin, its key or session, and its rate.

A rejected request raises an ApiError. Routes find the `Caller` in `request.state.caller`. A session is a signed cookie
that stands for a key until it expires; the service stores no list of sessions.
"""

import base64
import binascii
import contextlib
import hashlib
import hmac
import json
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

from fastapi import Request
from starlette.datastructures import Headers
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from resight.apps.service.api_keys import CALLER, Caller, Key
from resight.apps.service.client_address import group_address
from resight.apps.service.error_responses import ASK_ADMINISTRATOR, ApiError
from resight.apps.service.rate_limit import KeyGuard, RateLimit
from resight.apps.service.settings import LOOPBACK, ServiceSettings

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
OPEN = frozenset({"/", "/docs", "/favicon.ico", "/api/health", "/api/session", "/api/openapi.json"})  # without a key
OPEN_BELOW = ("/assets/", "/docs/")
COOKIE = "resight_session"
LIFETIME = 12 * 3600  # seconds
HEALTH = "/api/health"
ANY = "*"  # every origin; the service then requires keys, and cookies are never sent across sites


class AuthMiddleware:
    def __init__(self, app: ASGIApp, settings: ServiceSettings, guard: KeyGuard) -> None:
        self._app = app
        self._settings = settings
        self._guard = guard
        self._hosts = HostCheck(settings)
        self._rate = RateLimit(settings.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            connection = HTTPConnection(scope)
            await self._hosts.check(scope)
            check_origin(scope["method"], connection.headers, self._settings)
            caller = self._identify(connection)
            scope.setdefault("state", {})["caller"] = caller
            CALLER.set(caller)
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

    def _identify(self, connection: HTTPConnection) -> Caller | None:
        """Who sends the request, within the limits. The health check has none: it must answer whatever happens."""
        if connection.scope["path"] == HEALTH:
            with contextlib.suppress(ApiError):
                return identify(connection, self._settings, self._guard)
            return None
        caller = identify(connection, self._settings, self._guard)
        self._check_rate(connection, caller)
        return caller

    def _check_rate(self, connection: HTTPConnection, caller: Caller | None) -> None:
        address = group_address(read_address(connection))
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


def check_origin(method: str, headers: Headers, settings: ServiceSettings) -> None:
    """A 403 for requests of other sites' pages that change or cost something."""
    origin = headers.get("origin")
    if method in SAFE or origin is None or origin in settings.cors or ANY in settings.cors:
        return
    if _read_host(origin) != headers.get("host", "").lower():
        raise ApiError(
            403,
            "cross-site request blocked",
            expected="the page of this service, or an origin given with --cors",
            actual=origin[:80],
            fix="call the service from its own page, or from a program",
        )


def identify(connection: HTTPConnection, settings: ServiceSettings, guard: KeyGuard) -> Caller | None:
    """Who sends the request; None for an unknown client where a key is required, a 429 for one that guesses keys."""
    address = read_address(connection)
    if not settings.keys:
        return Caller(may_write=not settings.read_only, address=address)
    key = _find_key(connection, settings, guard, address)
    return make_caller(key, settings, address) if key else None


def make_caller(key: Key, settings: ServiceSettings, address: str) -> Caller:
    return Caller(key.name, key.may_write and not settings.read_only, key.collections, address)


def read_address(connection: HTTPConnection) -> str:
    """The client's address; behind a trusted proxy, the one that the proxy names."""
    return connection.client.host if connection.client else ""


def require_full_scope(request: Request) -> None:
    """A dependency of routes that show more than one collection's images: a 403 for a key of some collections only."""
    if request.state.caller.collections:
        raise ApiError(
            403,
            "this key is for some collections only",
            expected="a key for all collections",
            fix=ASK_ADMINISTRATOR,
        )


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
    moment = time.time() if now is None else now
    if end < moment:
        return None
    valid = [key for key in keys if not key.is_expired(moment)]
    return next((key for key in valid if key.name == name and key.digest.startswith(digest)), None)


def _find_key(connection: HTTPConnection, settings: ServiceSettings, guard: KeyGuard, address: str) -> Key | None:
    kind, _, text = connection.headers.get("authorization", "").partition(" ")
    given = text.strip() if kind.lower() == "bearer" else connection.headers.get("x-api-key", "")
    if given:
        return guard.find(given, address)
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
