"""Limits on connections: uvicorn's HTTP protocol with deadlines, and a table that bounds connections per address.

A connection is *silent* until the header of a request has arrived, and again after each response. Silent connections
cost no work but occupy a place, so a new connection that finds all places taken replaces the oldest silent one: of its
own address, or else of the address that has the most. The header of a request, the reading of a response and a request
as a whole have deadlines. Body speed is limited elsewhere (body_limit.py).
"""

import asyncio
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Any, Protocol

from uvicorn.protocols.http.h11_impl import H11Protocol

from resight.apps.service.client_address import group_address, is_loopback, is_within

PER_LOOPBACK = 512
TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
BUSY = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


@dataclass(frozen=True)
class ConnectionLimits:
    """Numbers of connections per process, and deadlines in seconds."""

    total: int = 800
    per_address: int = 64
    per_loopback: int = PER_LOOPBACK
    trusted_proxies: tuple[str, ...] = ()  # networks whose connections serve many clients: only `total` applies
    header: float = 10.0
    stall: float = 60.0  # that a client may take to read a full buffer of its response
    request: float = 3600.0

    def limit(self, address: str) -> int:
        if is_within(address, self.trusted_proxies):
            return self.total
        return self.per_loopback if is_loopback(address) else self.per_address


class Connection(Protocol):
    def drop(self) -> None:
        """Close at once."""
        ...


class ConnectionTable:
    """The connections of one process. Only the event loop's thread uses it."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._addresses: dict[Connection, str] = {}
        self._counts: Counter[str] = Counter()
        self._silent: dict[str, OrderedDict[Connection, None]] = {}  # by address, the oldest first

    def __len__(self) -> int:
        return len(self._addresses)

    def admit(self, connection: Connection, address: str) -> bool:
        """Add a silent connection, in place of an older silent one where all places are taken; false if none is."""
        group = group_address(address)
        if self._counts[group] >= self.limits.limit(address) and not self._drop_oldest(group):
            return False
        if len(self) >= self.limits.total and not self._drop_oldest(self._find_busiest()):
            return False
        self._addresses[connection] = group
        self._counts[group] += 1
        self.mark_silent(connection)
        return True

    def mark_silent(self, connection: Connection) -> None:
        """It waits for its client."""
        if group := self._addresses.get(connection):
            self._silent.setdefault(group, OrderedDict())[connection] = None

    def mark_busy(self, connection: Connection) -> None:
        """A request has arrived."""
        if group := self._addresses.get(connection):
            self._forget_silent(connection, group)

    def forget(self, connection: Connection) -> None:
        if group := self._addresses.pop(connection, None):
            self._counts[group] -= 1
            if not self._counts[group]:
                del self._counts[group]
            self._forget_silent(connection, group)

    def _drop_oldest(self, group: str) -> bool:
        if group not in self._silent:
            return False
        oldest = next(iter(self._silent[group]))
        self.forget(oldest)
        oldest.drop()
        return True

    def _find_busiest(self) -> str:
        """The address with the most silent connections."""
        return max(self._silent, key=lambda group: len(self._silent[group]), default="")

    def _forget_silent(self, connection: Connection, group: str) -> None:
        if group in self._silent:
            self._silent[group].pop(connection, None)
            if not self._silent[group]:
                del self._silent[group]


class LimitedProtocol(H11Protocol):
    """One connection. `configure` sets the limits of the process first."""

    table = ConnectionTable(ConnectionLimits())

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._deadline: asyncio.TimerHandle | None = None  # of the header, or of the request
        self._is_busy = False
        self._stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.table.admit(self, self.client[0] if self.client else ""):
            self._set_deadline(self.table.limits.header)
        else:
            transport.write(BUSY)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.table.forget(self)
        self._cancel_deadline()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if not self._is_busy and self._deadline is None:  # the first bytes of the next header
            self._set_deadline(self.table.limits.header)
        super().data_received(data)
        self._note_request()

    def on_response_complete(self) -> None:
        self._is_busy = False
        self._cancel_deadline()
        self.table.mark_silent(self)
        super().on_response_complete()  # starts the keep-alive deadline, or the next request of a pipeline
        self._note_request()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stall is None:
            self._stall = self.loop.call_later(self.table.limits.stall, self.drop)

    def resume_writing(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        super().resume_writing()

    def drop(self) -> None:
        self.transport.abort()

    def _note_request(self) -> None:
        if not self._is_busy and self.cycle is not None and not self.cycle.response_complete:
            self._is_busy = True
            self.table.mark_busy(self)
            self._set_deadline(self.table.limits.request)

    def _set_deadline(self, seconds: float) -> None:
        self._cancel_deadline()
        self._deadline = self.loop.call_later(seconds, self._expire)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        if self._is_busy:
            self.drop()
        elif not self.transport.is_closing():
            self.transport.write(TIMEOUT)
            self.transport.close()


def configure(limits: ConnectionLimits) -> None:
    """Set the limits of all connections of this process."""
    LimitedProtocol.table = ConnectionTable(limits)
