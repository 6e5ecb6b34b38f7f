"""What is promised, claimed, settled, cancelled and forgotten, in a database on disk."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from support.shelf import STATE

from resight.apps.service.error_responses import ApiError
from resight.apps.service.jobs import store as stores
from resight.apps.service.jobs.database import FILE, JobDatabase
from resight.apps.service.jobs.job_queue import MAX_ATTEMPTS, SUSPICIOUS, JobQueue
from resight.apps.service.jobs.models import ItemResult, PendingImage
from resight.apps.service.jobs.store import JobStore, QueueLimits
from resight.errors import StorageError
from resight.types import Skipped


class Desk:
    """Both sides of one store."""

    def __init__(self, folder: Path, limits: QueueLimits | None = None) -> None:
        self.file = JobDatabase(folder)
        self.store = JobStore(self.file, "photos", limits)
        self.queue = JobQueue(self.file)

    def promise(self, *ids: str, skipped: Sequence[Skipped] = ()) -> str:
        """A job that is accepted; each file's hash is its id."""
        job = self.receive(*ids, skipped=skipped)
        return self.store.accept(job).id

    def receive(self, *ids: str, skipped: Sequence[Skipped] = ()) -> str:
        promises = [PendingImage(id, f"{id}.jpg", id, 100) for id in ids]
        return self.store.receive("add", lambda _: (promises, skipped))

    def claim(self, limit: int = 32) -> list[str]:
        return [item.image.id for item in self.queue.claim(limit)]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.file.close()


def test_a_job_is_waiting_then_running_then_done(desk: Desk) -> None:
    job = desk.promise("a", "b", skipped=[Skipped("bad.jpg", "it is empty")])
    found = desk.store.find(job)
    assert found is not None
    assert (found.state, found.done, found.total, found.skipped) == (
        "waiting",
        1,
        3,
        (Skipped("bad.jpg", "it is empty"),),
    )
    items = desk.queue.claim(1)
    desk.queue.finish([ItemResult(items[0], "added")], STATE)
    found = desk.store.find(job)
    assert found is not None
    assert (found.state, found.done, found.added, found.finished) == ("running", 2, 1, None)
    desk.queue.finish([ItemResult(desk.queue.claim(32)[0], "updated")], STATE)
    found = desk.store.find(job)
    assert found is not None and found.finished is not None
    assert (found.state, found.done, found.added, found.updated) == ("done", 3, 1, 1)
    assert not desk.queue.has_work() and desk.claim() == []


def test_a_promise_comes_back_as_it_was_made(desk: Desk, tmp_path: Path) -> None:
    promise = PendingImage(
        "a", "a.jpg", "f" * 64, 7, {"label": "x", "seen": True, "n": 2}, (1.0, 2.0, 3.5, 4.0), tmp_path
    )
    desk.store.accept(desk.store.receive("update", lambda _: ([promise], [])))
    assert [item.image for item in desk.queue.claim(9)] == [promise]


def test_what_is_still_being_received_is_neither_shown_nor_added_but_its_files_are_held(desk: Desk) -> None:
    job = desk.receive("a")
    assert desk.store.find(job) is None and desk.store.list_jobs() == [] and desk.claim() == []
    with desk.store.hold() as held:
        assert held.list_needed() == {"a"}
    desk.store.abandon(job)
    with desk.store.hold() as held:
        assert held.list_needed() == set()


def test_another_process_goes_on_with_what_was_claimed_by_one_that_died(desk: Desk, tmp_path: Path) -> None:
    desk.promise("a", "b")
    assert desk.claim() == ["a", "b"]
    other = Desk(tmp_path)
    assert other.claim() == ["a", "b"]
    other.file.close()


def test_jobs_take_turns(desk: Desk) -> None:
    first, second = desk.promise("a", "b", "c", "d"), desk.promise("x", "y")
    order = []
    for _ in range(3):
        items = desk.queue.claim(2)
        order.append((items[0].job, [item.image.id for item in items]))
        desk.queue.finish([ItemResult(item, "added") for item in items], STATE)
    assert order == [(first, ["a", "b"]), (second, ["x", "y"]), (first, ["c", "d"])]


def test_the_later_promise_for_an_id_counts(desk: Desk) -> None:
    first = desk.promise("a", "b")
    second = desk.promise("a")
    found = desk.store.find(first)
    assert found is not None and found.skipped == (Skipped("a.jpg", stores.REPLACED),)
    claimed = [desk.queue.claim(32) for _ in range(2)]
    assert [(item.job, item.image.id) for items in claimed for item in items] == [(first, "b"), (second, "a")]


def test_what_is_promised_is_found_while_the_next_promise_is_made(desk: Desk) -> None:
    desk.promise("a")
    desk.receive("b")
    found = []
    desk.store.receive("add", lambda find: (found.extend(find(id) for id in "abc"), ([], []))[1])
    assert [one and one.id for one in found] == ["a", "b", None]


def test_cancelled_items_are_not_claimed_and_what_was_stored_meanwhile_counts(desk: Desk) -> None:
    job = desk.promise("a", "b", "c")
    items = desk.queue.claim(1)
    cancelled = desk.store.cancel(job)
    assert cancelled is not None and (cancelled.state, cancelled.done) == ("cancelled", 0)
    desk.queue.finish([ItemResult(items[0], "added")], STATE)
    found = desk.store.find(job)
    assert found is not None
    assert (found.state, found.done, found.added, found.total) == ("cancelled", 1, 1, 3)
    assert desk.claim() == []
    assert desk.store.cancel("unknown") is None


def test_deleted_ids_leave_the_queue(desk: Desk) -> None:
    job = desk.promise("a", "b")
    assert desk.store.drop(["b", "z"]) == {"b"}
    assert desk.claim() == ["a"]
    found = desk.store.find(job)
    assert found is not None and found.skipped == (Skipped("b.jpg", stores.DELETED),)


def test_an_image_on_which_the_service_dies_is_tried_alone_and_at_last_quarantined(desk: Desk) -> None:
    job = desk.promise("a", "deadly")
    for _ in range(SUSPICIOUS):
        assert desk.claim() == ["a", "deadly"]
    items = desk.queue.claim(32)
    assert [item.image.id for item in items] == ["a"]
    desk.queue.finish([ItemResult(items[0], "added")], STATE)
    for _ in range(MAX_ATTEMPTS - SUSPICIOUS):
        assert desk.claim() == ["deadly"]
    assert desk.claim() == []
    found = desk.store.find(job)
    assert found is not None and (found.state, found.added, found.quarantined) == ("done", 1, 1)
    with desk.store.hold() as held:
        assert held.list_needed() == {"deadly"}, "the only copy stays"


def test_waiting_for_a_writer_or_a_disk_is_no_attempt_and_the_reason_is_shown(desk: Desk) -> None:
    job = desk.promise("a", "b")
    for _ in range(2 * MAX_ATTEMPTS):
        items = desk.queue.claim(32)
        assert len(items) == 2
        desk.queue.release(items, "the disk is full")
    found = desk.store.find(job)
    assert found is not None and (found.state, found.error) == ("running", "the disk is full")
    desk.queue.finish([ItemResult(item, "added") for item in desk.queue.claim(32)], STATE)
    found = desk.store.find(job)
    assert found is not None and (found.state, found.error) == ("done", None)


def test_a_job_that_cannot_be_done_fails_with_its_reason(desk: Desk) -> None:
    job = desk.promise("a")
    desk.queue.fail(job, "no weights")
    found = desk.store.find(job)
    assert found is not None and (found.state, found.error, found.skipped) == (
        "failed",
        "no weights",
        (Skipped("a.jpg", "no weights"),),
    )
    assert not desk.queue.has_work()


@pytest.mark.parametrize("limits", [QueueLimits(jobs=1), QueueLimits(items=3), QueueLimits(bytes=399)])
def test_what_may_wait_is_bounded_and_nothing_is_left_of_what_was_refused(tmp_path: Path, limits: QueueLimits) -> None:
    desk = Desk(tmp_path, limits)
    desk.promise("a", "b")
    with pytest.raises(ApiError) as refused:
        desk.receive("c", "d")
    assert refused.value.status == 429 and int(refused.value.headers["Retry-After"]) > 0
    desk.queue.finish([ItemResult(item, "added") for item in desk.queue.claim(32)], STATE)
    desk.promise("c", "d")
    assert len(desk.store.list_jobs()) == 2
    desk.file.close()


def test_the_oldest_finished_jobs_are_forgotten_and_open_ones_never(tmp_path: Path) -> None:
    desk = Desk(tmp_path, QueueLimits(remembered=2))
    jobs = []
    for id in "abcd":
        jobs.append(desk.promise(id))
        desk.queue.finish([ItemResult(item, "added") for item in desk.queue.claim(32)], STATE)
    jobs.append(desk.promise("e"))
    desk.store.forget()
    assert [job.id for job in desk.store.list_jobs()] == [jobs[4], jobs[3], jobs[2]]
    desk.file.close()


def test_jobs_are_forgotten_after_days_and_half_received_ones_after_minutes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.promise("a")
    desk.queue.finish([ItemResult(item, "added") for item in desk.queue.claim(32)], STATE)
    desk.receive("b")
    now = time.time()
    monkeypatch.setattr(stores.time, "time", lambda: now + 700)
    desk.store.forget()
    assert len(desk.store.list_jobs()) == 1
    with desk.store.hold() as held:
        assert held.list_needed() == set()
    monkeypatch.setattr(stores.time, "time", lambda: now + 8 * 86400)
    desk.store.forget()
    assert desk.store.list_jobs() == []


def test_to_look_makes_no_file(desk: Desk, tmp_path: Path) -> None:
    assert not desk.queue.has_work() and desk.store.list_jobs() == [] and desk.store.find("x") is None
    assert not (tmp_path / FILE).exists()


def test_a_damaged_journal_is_a_storage_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database, by any means" * 100)
    desk = Desk(tmp_path)
    with pytest.raises(StorageError, match="job database") as caught:
        desk.promise("a")
    assert "damaged file" in caught.value.fix
