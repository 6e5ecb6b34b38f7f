"""Who may pass: the Host and Origin of a request, its key or session, and how often it comes.

Refusals are raised; `tracing` answers them. What is behind finds the `Caller` in `request.state.caller`.
"""

from urllib.parse import urlsplit

from fastapi import Request
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from resight.apps.service import sessions
from resight.apps.service.keys import Caller, Key, find_key
from resight.apps.service.rates import RateLimit
from resight.apps.service.refusals import Refusal
from resight.apps.service.settings import LOOPBACK, ServiceSettings

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
    cookie = connection.cookies.get(sessions.COOKIE, "")
    return sessions.verify(cookie, settings.secret, settings.keys) if cookie else None


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith(OPEN_BELOW)


def _strip_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
