"""An accepted upload ends stored, discarded by its client, or in quarantine: nothing else removes its file."""

import sqlite3
from contextlib import closing
from typing import cast

import pytest
from support.shelf import Shelf, arrive, promise, read

from resight.apps.service.jobs.database import FILE
from resight.apps.service.jobs.intake import Intake
from resight.apps.service.jobs.job_queue import MAX_ATTEMPTS
from resight.apps.service.jobs.maintenance import sweep
from resight.apps.service.jobs.store import QueueLimits
from resight.apps.service.jobs.upload_ledger import RECOVERED
from resight.apps.service.jobs.worker import BatchAdder
from resight.collection import Collection
from resight.collection.upkeep.integrity import _verify_service
from resight.errors import MissingWeights
from resight.types import ImageRef


def list_files(intake: Intake) -> set[bytes]:
    return {intake.uploads.path(sha256).read_bytes() for sha256 in intake.uploads.list_hashes()}


def interrupt(intake: Intake) -> None:
    """A service that dies as often as it may while it adds."""
    for _ in range(MAX_ATTEMPTS):
        intake.queue.claim(32)
    assert intake.queue.claim(32) == []


def test_an_upload_whose_adding_was_interrupted_too_often_is_kept_listed_and_retried(
    intake: Intake, shelf: Shelf
) -> None:
    job = promise(intake, "a")
    interrupt(intake)
    assert sweep(intake) == 0 and list_files(intake) == {b"a"}
    done = read(intake, job)
    assert (done.state, done.added, done.quarantined, len(done.skipped)) == ("done", 0, 1, 1)
    (held,) = intake.quarantine.list_uploads(10)
    assert (held.id, held.job, held.bytes, intake.quarantine.count()) == ("a", job, 1, 1)
    assert intake.quarantine.retry([held.key, "nothing-1", "x"]) == {held.key}
    assert BatchAdder(intake).add_next()
    assert set(shelf.images) == {"a"} and intake.quarantine.count() == 0
    assert (read(intake, job).state, read(intake, job).added, read(intake, job).quarantined) == ("done", 1, 0)


def test_only_discarding_removes_an_upload_from_the_quarantine(shelf: Shelf) -> None:
    intake = Intake("photos", cast(Collection, shelf), QueueLimits(remembered=0, days=-1.0))
    promise(intake, "a")
    interrupt(intake)
    assert sweep(intake) == 0, "not even when the job is old"
    (held,) = intake.quarantine.list_uploads(10)
    assert intake.quarantine.discard([held.key, "x"]) == {held.key}
    assert intake.quarantine.discard([held.key]) == set()
    assert sweep(intake) == 1 and list_files(intake) == set()
    intake.close()


@pytest.mark.parametrize("fault", [MissingWeights("no weights"), None])
def test_an_accepted_image_that_cannot_be_added_now_is_kept(
    intake: Intake, shelf: Shelf, fault: Exception | None
) -> None:
    shelf.faults = [fault] if fault else []
    shelf.unbearable = b"odd"
    intake.add([arrive("odd"), arrive("bad")])
    BatchAdder(intake).add_next()
    assert sweep(intake) == 0 and list_files(intake) == {b"odd", b"bad"}
    assert {held.id for held in intake.quarantine.list_uploads(10)} == {"odd", "bad"}


def test_images_that_the_collection_lost_after_they_were_stored_are_added_again(intake: Intake, shelf: Shelf) -> None:
    adder = BatchAdder(intake)
    promise(intake, "kept")
    adder.add_next()
    before, version = dict(shelf.images), shelf.version
    job, deleted = promise(intake, "lost"), promise(intake, "deleted")
    adder.add_next(), adder.add_next()
    intake.delete(["deleted"], patience=0)
    assert read(intake, job).state == read(intake, deleted).state == "done"
    shelf.go_back(before, version)
    assert sweep(intake) == 1, "what its client deleted"
    assert list_files(intake) == {b"kept", b"lost"}
    assert (read(intake, job).state, read(intake, deleted).state) == ("waiting", "done")
    assert adder.add_next()
    assert set(shelf.images) == {"kept", "lost"} and read(intake, job).added == 1


def test_the_next_process_sees_that_the_collection_went_back_and_adds_without_a_sweep(
    intake: Intake, shelf: Shelf
) -> None:
    promise(intake, "a")
    BatchAdder(intake).add_next()
    shelf.go_back({}, 1)
    other = Intake("photos", cast(Collection, shelf))
    assert BatchAdder(other).add_next()
    assert set(shelf.images) == {"a"}
    other.close()


def test_what_was_lost_is_added_again_even_when_another_program_has_written_meanwhile(
    intake: Intake, shelf: Shelf
) -> None:
    promise(intake, "a")
    BatchAdder(intake).add_next()
    shelf.go_back({}, 1)
    own = shelf.path / "own.jpg"
    own.write_bytes(b"own")
    for _ in range(5):  # resight index: the version is beyond the one that was lost
        shelf.add([ImageRef("own", own)])
    assert sweep(intake) == 0 and list_files(intake) == {b"a"}
    assert BatchAdder(intake).add_next() and set(shelf.images) == {"a", "own"}


def test_a_lost_upload_whose_job_is_forgotten_goes_to_the_quarantine(shelf: Shelf) -> None:
    intake = Intake("photos", cast(Collection, shelf), QueueLimits(remembered=0, days=-1.0))
    promise(intake, "a")
    BatchAdder(intake).add_next()
    sweep(intake)
    assert intake.store.list_jobs() == []
    shelf.go_back({}, 1)
    assert sweep(intake) == 0 and list_files(intake) == {b"a"} and intake.quarantine.count() == 1
    intake.close()


def test_an_upload_of_an_image_that_another_program_deleted_is_removed(intake: Intake, shelf: Shelf) -> None:
    promise(intake, "a", "b")
    BatchAdder(intake).add_next()
    shelf.delete(["a"])  # resight delete, which does not know the job database
    assert sweep(intake) == 1 and list_files(intake) == {b"b"}


def test_uploads_outlive_a_job_database_that_is_moved_away(intake: Intake, shelf: Shelf) -> None:
    promise(intake, "a")
    intake.close()
    for path in shelf.path.glob(f"{FILE}*"):
        path.unlink()
    other = Intake("photos", cast(Collection, shelf))
    assert sweep(other) == 0 and list_files(other) == {b"a"}
    (held,) = other.quarantine.list_uploads(10)
    assert held.id.startswith(RECOVERED) and held.bytes == 1
    other.quarantine.retry([held.key])
    assert BatchAdder(other).add_next()
    assert [record.path.read_bytes() for record in shelf.images.values()] == [b"a"]
    other.close()


def test_an_upload_sent_again_after_it_was_cancelled_is_kept(intake: Intake) -> None:
    intake.cancel(promise(intake, "a"))
    promise(intake, "a")
    interrupt(intake)
    assert sweep(intake) == 0 and list_files(intake) == {b"a"}


def test_a_damaged_upload_is_replaced_when_it_is_sent_again(intake: Intake) -> None:
    (path,) = intake.uploads.save([b"content"])
    path.write_bytes(b"CONTENT")
    intake.uploads.save([b"content"])
    assert path.read_bytes() == b"content"


VERSION_2 = ("ALTER TABLE items DROP COLUMN checksum", "PRAGMA user_version = 2")
VERSION_1 = (
    "ALTER TABLE items DROP COLUMN checksum",
    "DROP INDEX stored_items",
    "ALTER TABLE items DROP COLUMN version",
    "DROP TABLE uploads",
    "DROP TABLE commits",
    "PRAGMA user_version = 0",
)


def change_database(intake: Intake, *words: str) -> None:
    intake.close()
    with closing(sqlite3.connect(intake.collection.local_folder / FILE, isolation_level=None)) as table:
        for word in words:
            table.execute(word)


def test_a_changed_entry_of_the_job_database_is_set_aside_until_somebody_decides(intake: Intake, shelf: Shelf) -> None:
    job = promise(intake, "a", "b")
    change_database(intake, """UPDATE items SET attributes = '{"label": "other"}' WHERE id = 'a'""")
    adder = BatchAdder(intake)
    while adder.add_next():
        pass
    assert set(shelf.images) == {"b"} and (read(intake, job).added, read(intake, job).quarantined) == (1, 1)
    (fault,) = _verify_service(intake.collection.local_folder, deep=True)
    assert (fault.file, fault.images) == (FILE, ("a",))
    (held,) = intake.quarantine.list_uploads(10)
    assert "has changed" in held.reason and intake.quarantine.retry([held.key]) == {held.key}
    assert adder.add_next() and set(shelf.images) == {"a", "b"}
    assert list(_verify_service(intake.collection.local_folder, deep=True)) == []


def test_an_upload_that_changed_on_the_disk_is_not_added(intake: Intake, shelf: Shelf) -> None:
    promise(intake, "a", "b")
    (changed,) = (sha256 for sha256 in intake.uploads.list_hashes() if intake.uploads.path(sha256).read_bytes() == b"a")
    intake.uploads.path(changed).write_bytes(b"x")
    assert BatchAdder(intake).add_next()
    assert set(shelf.images) == {"b"} and sweep(intake) == 0
    assert [(held.id, "has changed" in held.reason) for held in intake.quarantine.list_uploads(10)] == [("a", True)]


@pytest.mark.parametrize("words", [VERSION_1, VERSION_2])
def test_an_earlier_database_is_migrated_with_everything_in_it(
    intake: Intake, shelf: Shelf, words: tuple[str, ...]
) -> None:
    promise(intake, "stored")
    BatchAdder(intake).add_next()
    intake.cancel(promise(intake, "cancelled"))
    job = promise(intake, "waiting")
    change_database(intake, *words)
    other = Intake("photos", cast(Collection, shelf))
    assert read(other, job).state == "waiting"
    assert sweep(other) == 1 and list_files(other) == {b"stored", b"waiting"}
    assert BatchAdder(other).add_next() and set(shelf.images) == {"stored", "waiting"}
    other.close()
