"""How often one client may ask: a bucket of tokens each, filled steadily. The clients asked last are remembered."""

import time
from collections import OrderedDict

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
