"""Server-sent events of a job."""

import json
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from support.shelf import STATE

from resight.apps.service.error_responses import ApiError
from resight.apps.service.jobs import events
from resight.apps.service.jobs.database import JobDatabase
from resight.apps.service.jobs.events import EventStreams
from resight.apps.service.jobs.job_queue import JobQueue
from resight.apps.service.jobs.models import ItemResult, Job, PendingImage
from resight.apps.service.jobs.store import JobStore


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobDatabase]:
    monkeypatch.setattr(events, "INTERVAL", 0.01)
    made = JobDatabase(tmp_path)
    yield made
    made.close()


def start(file: JobDatabase) -> tuple[JobStore, Job]:
    store = JobStore(file, "photos")
    images = [PendingImage(id, id, id, 1) for id in ("a", "b")]
    return store, store.accept(store.receive("add", lambda _: (images, [])))


async def never() -> bool:
    return False


def test_every_change_is_told_once_and_the_end_is_told_as_done(file: JobDatabase) -> None:
    store, job = start(file)

    async def listen() -> list[tuple[str, int]]:
        told = []
        async for text in EventStreams().follow(store, job, never):
            event, data = text.strip().split("\n")
            told.append((event, json.loads(data.removeprefix("data: "))["done"]))
            await anyio.sleep(0.03)
            if items := JobQueue(file).claim(1):
                JobQueue(file).finish([ItemResult(items[0], "added")], STATE)
        return told

    assert anyio.run(listen) == [
        ("event: progress", 0),
        ("event: progress", 1),
        ("event: progress", 2),
        ("event: done", 2),
    ]


def test_there_is_a_sign_of_life_while_nothing_happens_and_an_end_when_nobody_listens(
    file: JobDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HEARTBEAT", 0.0)
    store, job = start(file)
    looks: list[bool] = []

    async def is_over() -> bool:
        looks.append(True)
        return len(looks) > 3

    async def listen() -> list[str]:
        return [text async for text in EventStreams().follow(store, job, is_over)]

    assert anyio.run(listen)[1:] == [": still here\n\n"] * 3


def test_listeners_are_bounded_and_a_slot_is_free_again_after_its_end(file: JobDatabase) -> None:
    store, job = start(file)
    listeners = EventStreams(limit=1)

    async def listen() -> None:
        events = listeners.follow(store, job, never)
        await anext(events)
        with pytest.raises(ApiError) as refused:
            listeners.check_limit()
        assert refused.value.status == 429
        await events.aclose()
        listeners.check_limit()

    anyio.run(listen)
