"""Clients that ask at times of their own: open-loop arrivals, so that a slow server does not slow its clients down.

Each client is a Poisson process; a request that is still waiting does not hold back the next. What a request took
counts from the moment it was due, not from the moment it could be sent.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

PATIENCE = 120.0


@dataclass(frozen=True)
class Asked:
    query: int  # which of the queries
    status: int  # 0: no answer at all
    seconds: float
    begun: float
    retry_after: str | None = None
    answer: dict[str, Any] = field(default_factory=dict, repr=False)


def run_open_loop(
    address: str, queries: Sequence[tuple[str, bytes]], rate: float, clients: int, seconds: float, seed: int = 0
) -> list[Asked]:
    """`clients` ask together `rate` times a second, for so many seconds."""
    return asyncio.run(_run(address, queries, rate, clients, seconds, seed))


def run_closed_loop(address: str, queries: Sequence[tuple[str, bytes]], clients: int, seconds: float) -> list[Asked]:
    """Each client asks again as soon as it has its answer: what the server gives at most."""
    return asyncio.run(_run_closed(address, queries, clients, seconds))


async def _run(
    address: str, queries: Sequence[tuple[str, bytes]], rate: float, clients: int, seconds: float, seed: int
) -> list[Asked]:
    begun = time.monotonic()
    async with _connect(address) as client:
        parts = [
            _arrive(client, queries, rate / clients, begun, seconds, random.Random(seed + number))
            for number in range(clients)
        ]
        return [asked for part in await asyncio.gather(*parts) for asked in part]


async def _arrive(
    client: httpx.AsyncClient,
    queries: Sequence[tuple[str, bytes]],
    rate: float,
    begun: float,
    seconds: float,
    generator: random.Random,
) -> list[Asked]:
    due, running = begun, []
    while (due := due + generator.expovariate(rate)) < begun + seconds:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        running.append(asyncio.create_task(_ask(client, queries, generator.randrange(len(queries)), due)))
    return list(await asyncio.gather(*running))


async def _run_closed(address: str, queries: Sequence[tuple[str, bytes]], clients: int, seconds: float) -> list[Asked]:
    limit = time.monotonic() + seconds

    async def go_on(client: httpx.AsyncClient, number: int) -> list[Asked]:
        asked: list[Asked] = []
        while time.monotonic() < limit:
            asked.append(await _ask(client, queries, (number + clients * len(asked)) % len(queries), time.monotonic()))
        return asked

    async with _connect(address) as client:
        return [asked for part in await asyncio.gather(*(go_on(client, n) for n in range(clients))) for asked in part]


async def _ask(client: httpx.AsyncClient, queries: Sequence[tuple[str, bytes]], number: int, due: float) -> Asked:
    name, data = queries[number]
    try:
        response = await client.post("/api/search", files={"image": (name, data)}, data={"k": "10"})
    except httpx.TransportError:
        return Asked(number, 0, time.monotonic() - due, due)
    seconds = time.monotonic() - due
    answer = response.json() if response.status_code == 200 else {}
    return Asked(number, response.status_code, seconds, due, response.headers.get("Retry-After"), answer)


def _connect(address: str) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
    return httpx.AsyncClient(base_url=address, timeout=PATIENCE, limits=limits)
