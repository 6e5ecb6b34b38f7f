"""Limits per client: how many requests it may send, and how many wrong keys.

Clients are told apart by their key or address (client_address.py). Each server process counts for itself.
"""

import time
from collections import OrderedDict
from collections.abc import Sequence

from resight.apps.service.api_keys import Key, find_key, make_digest
from resight.apps.service.client_address import group_address
from resight.apps.service.error_responses import ApiError

REMEMBERED = 10_000  # clients
BURST = 10  # seconds' worth of requests at once: a page loads many thumbnails together
WRONG_KEYS, WRONG_RATE = 10, 0.1  # wrong keys per address at once, and then per second


class RateLimit:
    """A token bucket per client."""

    def __init__(self, rate: float, capacity: float | None = None) -> None:
        """`rate`: requests per second; 0: no limit. `capacity`: requests at once."""
        self.rate = rate
        self._capacity = max(1.0, rate * BURST) if capacity is None else capacity
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client → tokens, time

    def take(self, client: str, now: float | None = None) -> float:
        """0, or the seconds until this client may send its next request."""
        if not self.rate:
            return 0.0
        now = time.monotonic() if now is None else now
        tokens = self._count(client, now)
        allowed = tokens >= 1
        self._buckets[client] = (tokens - 1 if allowed else tokens, now)
        self._buckets.move_to_end(client)
        while len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - tokens) / self.rate

    def wait(self, client: str, now: float | None = None) -> float:
        """The same without counting a request."""
        tokens = self._count(client, time.monotonic() if now is None else now)
        return 0.0 if tokens >= 1 else (1 - tokens) / self.rate

    def _count(self, client: str, now: float) -> float:
        tokens, before = self._buckets.get(client, (self._capacity, now))
        return min(self._capacity, tokens + (now - before) * self.rate)


class KeyGuard:
    """Slows down clients that guess keys: after a few wrong ones, keys from that address are not looked up for a while.

    A key that was accepted from the address before still is, so that others behind the same address can go on.
    """

    def __init__(self, keys: Sequence[Key]) -> None:
        self._keys = keys
        self._wrong = RateLimit(WRONG_RATE, WRONG_KEYS)
        self._accepted: OrderedDict[tuple[str, str], None] = OrderedDict()  # address and digest

    def find(self, text: str, address: str, now: float | None = None) -> Key | None:
        """The key, or None for a wrong one; a 429 for an address that sent too many wrong ones."""
        client = group_address(address)
        known = client, make_digest(text)
        seconds = self._wrong.wait(client, now)
        if seconds and known not in self._accepted:
            raise ApiError(
                429,
                "too many wrong keys",
                expected=f"at most {WRONG_KEYS} wrong keys, then one every {1 / WRONG_RATE:g} seconds",
                fix="check the key, and try again after the seconds in Retry-After",
                retry_after=seconds,
            )
        key = find_key(self._keys, text)
        if key is None:
            self._wrong.take(client, now)
        else:
            self._accepted[known] = None
            self._accepted.move_to_end(known)
            if len(self._accepted) > REMEMBERED:
                self._accepted.popitem(last=False)
        return key
