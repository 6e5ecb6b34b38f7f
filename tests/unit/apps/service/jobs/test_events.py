"""Server-sent events of a job."""

import json
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from resight.apps.service.error_responses import Refusal
from resight.apps.service.jobs import events as listening
from resight.apps.service.jobs.database import JournalFile
from resight.apps.service.jobs.events import Listeners
from resight.apps.service.jobs.models import Job, Promise, Settled
from resight.apps.service.jobs.store import Journal, Queue


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JournalFile]:
    monkeypatch.setattr(listening, "LOOK_EVERY", 0.01)
    made = JournalFile(tmp_path)
    yield made
    made.close()


def start(file: JournalFile) -> tuple[Journal, Job]:
    journal = Journal(file, "photos")
    promises = [Promise(id, id, id, 1) for id in ("a", "b")]
    return journal, journal.accept(journal.receive("add", lambda _: (promises, [])))


async def never() -> bool:
    return False


def test_every_change_is_told_once_and_the_end_is_told_as_done(file: JournalFile) -> None:
    journal, job = start(file)

    async def listen() -> list[tuple[str, int]]:
        told = []
        async for text in Listeners().follow(journal, job, never):
            event, data = text.strip().split("\n")
            told.append((event, json.loads(data.removeprefix("data: "))["done"]))
            await anyio.sleep(0.03)
            if items := Queue(file).claim(1):
                Queue(file).settle([Settled(items[0], "added")])
        return told

    assert anyio.run(listen) == [
        ("event: progress", 0),
        ("event: progress", 1),
        ("event: progress", 2),
        ("event: done", 2),
    ]


def test_there_is_a_sign_of_life_while_nothing_happens_and_an_end_when_nobody_listens(
    file: JournalFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "SIGN_OF_LIFE", 0.0)
    journal, job = start(file)
    looks: list[bool] = []

    async def is_over() -> bool:
        looks.append(True)
        return len(looks) > 3

    async def listen() -> list[str]:
        return [text async for text in Listeners().follow(journal, job, is_over)]

    assert anyio.run(listen)[1:] == [": still here\n\n"] * 3


def test_listeners_are_bounded_and_a_place_is_free_again_after_its_end(file: JournalFile) -> None:
    journal, job = start(file)
    listeners = Listeners(most=1)

    async def listen() -> None:
        events = listeners.follow(journal, job, never)
        await anext(events)
        with pytest.raises(Refusal) as refused:
            listeners.check_room()
        assert refused.value.status == 429
        await events.aclose()
        listeners.check_room()

    anyio.run(listen)
