"""Calls as HTTP: addresses and keys in, responses out; retries, and errors of the service as ResightErrors.

A `Call` says what to send; `Connection` keeps what both clients share. httpx does the sending, reuses connections, and
is imported when a client is made: it comes with the extra `client`.
"""

import importlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from resight.errors import (
    AccessDenied,
    CollectionError,
    InputError,
    MissingExtra,
    ResightError,
    ServiceBusy,
    ServiceError,
    StorageError,
    install_extra,
)

if TYPE_CHECKING:
    import httpx

TIMEOUT, RETRIES = 60.0, 4
File = tuple[str, bytes]  # name and content
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0  # seconds
REFUSED_FOR_NOW = (429, 503)
KINDS: Mapping[int, type[ResightError]] = {
    **dict.fromkeys((400, 413, 415, 422), InputError),
    **dict.fromkeys((401, 403), AccessDenied),
    404: CollectionError,
    **dict.fromkeys(REFUSED_FOR_NOW, ServiceBusy),
    507: StorageError,
}


@dataclass(frozen=True)
class Call:
    """One request. `repeatable`: sending it twice does the same as sending it once."""

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    fields: Sequence[tuple[str, str]] = ()  # of a form
    files: Sequence[tuple[str, File]] = ()
    body: Any = None  # JSON
    is_form: bool = False
    repeatable: bool = True
    accepts: tuple[int, ...] = ()  # statuses beside 2xx whose body is the answer

    def arguments(self) -> dict[str, Any]:
        """For httpx. A form is always multipart, also without files."""
        found: dict[str, Any] = {"params": {name: value for name, value in self.params.items() if value is not None}}
        if self.is_form:
            found["files"] = [*((name, (None, text)) for name, text in self.fields), *self.files]
        if self.body is not None:
            found["json"] = self.body
        return found


class Connection:
    """Where a service is, how to ask it, and how long to keep asking."""

    def __init__(self, url: str, key: str | None, timeout: float, retries: int) -> None:
        self.url = check_url(url)
        self.retries = retries
        self.settings: dict[str, Any] = {
            "base_url": self.url,
            "timeout": timeout,
            "headers": {"Authorization": f"Bearer {key}"} if key else {},
        }

    def pauses(self) -> Iterator[float]:
        """Seconds before each further attempt, where the service names none."""
        for attempt in range(self.retries):
            yield min(FIRST_PAUSE * 2**attempt, LONGEST_PAUSE) * random.uniform(0.8, 1.2)  # nosec B311

    def find_pause(self, response: "httpx.Response", pause: float | None) -> float | None:
        """Seconds to wait before asking again after this response; None: it is final.

        The service refuses with 429 and 503 before it does anything, so that every call can be repeated then.
        """
        if pause is None or response.status_code not in REFUSED_FOR_NOW:
            return None
        wanted = read_seconds(response.headers.get("retry-after"))
        if wanted is None:
            return pause if response.status_code == 429 else None
        return None if wanted > LONGEST_PAUSE else wanted

    def find_pause_after(self, call: Call, error: Exception, pause: float | None) -> float | None:
        """The same where no response came: a call that may have arrived is repeated only if that does no harm."""
        httpx = import_httpx()
        if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)):
            return pause  # nothing was sent
        return pause if call.repeatable and not isinstance(error, httpx.TimeoutException) else None

    def to_error(self, error: Exception) -> ServiceError:
        """An exception of httpx as ours."""
        slow = isinstance(error, import_httpx().TimeoutException)
        return ServiceError(
            f"{self.url} does not answer",
            expected=f"an answer within {self.settings['timeout']:g} seconds" if slow else "a running `resight serve`",
            actual="none" if slow else str(error) or type(error).__name__,
            fix="raise `timeout`, or ask for less at once" if slow else "check the address, and that the service runs",
        )

    def lose_stream(self) -> ServiceError:
        return ServiceError(
            "the service ends the stream of a job before the job is over",
            expected="events until the job is over",
            actual=f"{self.retries + 1} streams without news",
            fix="check that the service runs, then wait for the job again",
        )


def check_url(url: str) -> str:
    """The address of a service without a slash at its end."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError(
            "this is no address of a service",
            expected="http://HOST:PORT or https://HOST",
            actual=repr(url),
            fix='e.g. resight.Client("http://127.0.0.1:8080")',
        )
    return url.rstrip("/")


def read_seconds(text: str | None) -> float | None:
    """The header Retry-After; None where it is missing or no number."""
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:
        return None


def read_json(response: "httpx.Response", call: Call) -> Any:
    """The JSON of a response. An error of the service becomes one of ours, with the same four parts."""
    if response.is_success or response.status_code in call.accepts:
        try:
            return response.json()
        except ValueError as error:
            raise _not_resight(response) from error
    raise make_error(response)


def make_error(response: "httpx.Response") -> ResightError:
    """The error that the body of a response describes; its note holds the request's id."""
    try:
        content = response.json()
        parts = {name: str(content["error"][name]) for name in ("problem", "expected", "actual", "fix")}
    except (ValueError, KeyError, TypeError):
        return _not_resight(response)
    error = make_error_of(parts, KINDS.get(response.status_code, ServiceError))
    error.add_note(f"HTTP {response.status_code}, request {content.get('request_id', '')}")
    return error


def make_error_of(parts: Mapping[str, str], kind: type[ResightError]) -> ResightError:
    return kind(parts["problem"], expected=parts["expected"], actual=parts["actual"], fix=parts["fix"])


def _not_resight(response: "httpx.Response") -> ServiceError:
    return ServiceError(
        f"{response.url} does not answer like resight",
        expected="JSON of a `resight serve` of this version",
        actual=f"HTTP {response.status_code}, {response.headers.get('content-type') or 'no content type'}",
        fix="check the address, and the proxy in front of the service",
    )


class EventParser:
    """Lines of a stream of server-sent events in, events out, each at its empty line."""

    def __init__(self) -> None:
        self._name, self._data = "message", ""

    def feed(self, line: str) -> tuple[str, Any] | None:
        field, _, value = line.partition(":")
        if field == "event":
            self._name = value.strip()
        elif field == "data":
            self._data += value.strip()
        elif not line and self._data:
            name, data = self._name, json.loads(self._data)
            self._name, self._data = "message", ""
            return name, data
        return None


def import_httpx() -> Any:
    """The package httpx."""
    try:
        return importlib.import_module("httpx")
    except ImportError as error:
        raise MissingExtra(
            "a client needs httpx",
            expected="the extra client",
            actual="httpx is not installed",
            fix=f"{install_extra('client')}, or pip install httpx",
        ) from error
