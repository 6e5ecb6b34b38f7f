"""Portions added in turns, with a collection that fails on demand; deletes and updates beside it."""

import hashlib
import threading
import time
from pathlib import Path
from typing import cast

import pytest
from support.shelf import Shelf, arrive, promise, read

from resight.apps.service.error_responses import ApiError
from resight.apps.service.jobs import worker as adders
from resight.apps.service.jobs.intake import Intake
from resight.apps.service.jobs.maintenance import sweep
from resight.apps.service.jobs.models import PendingImage, ReceivedFile
from resight.apps.service.jobs.worker import BatchAdder
from resight.apps.service.jobs.write_lock import hold_write_lock
from resight.collection import Collection
from resight.errors import CollectionBusy, MissingWeights, StorageError
from resight.files.lock import writer_lock
from resight.types import ImageRef, Skipped


def test_a_promise_is_on_disk_and_is_kept(intake: Intake, shelf: Shelf) -> None:
    job = intake.add([arrive("a.jpg", label="x"), arrive("b.jpg")], skipped=[Skipped("c.jpg", "empty")])
    assert len(list(intake.uploads.list_hashes())) == 2
    assert BatchAdder(intake).add_next()
    assert shelf.images["a.jpg"].attributes == {"label": "x"}
    assert shelf.images["a.jpg"].path.read_bytes() == b"a.jpg"
    done = read(intake, job.id)
    assert (done.state, done.added, done.done, done.total) == ("done", 2, 3, 3)
    assert not BatchAdder(intake).add_next()


def test_portions_grow_while_they_are_quick_but_not_beyond_their_limit(intake: Intake, shelf: Shelf) -> None:
    promise(intake, *(f"{number}.jpg" for number in range(100)))
    adder = BatchAdder(intake)
    while adder.add_next():
        pass
    assert [len(portion) for portion in shelf.portions] == [4, 8, 16, 32, 32, 8]


def test_slow_images_come_in_small_portions(intake: Intake, shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adders, "BATCH_SECONDS", 1e-9)
    promise(intake, "a", "b", "c", "d", "e", "f")
    adder = BatchAdder(intake)
    while adder.add_next():
        pass
    assert [len(portion) for portion in shelf.portions] == [4, 1, 1]


def test_a_busy_collection_is_waited_for_and_no_attempt_is_counted(intake: Intake, shelf: Shelf) -> None:
    job = promise(intake, "a")
    adder = BatchAdder(intake)
    with writer_lock(shelf.path):
        assert not adder.add_next()
        assert not adder.add_next(), "it waits before it tries again"
    assert read(intake, job).state == "running"
    time.sleep(adders.MIN_PAUSE)
    assert adder.add_next()
    assert read(intake, job).added == 1


def test_a_full_disk_is_waited_for_and_said_without_paths(intake: Intake, shelf: Shelf) -> None:
    shelf.faults = [StorageError("no room in /secret/place")]
    job = promise(intake, "a")
    adder = BatchAdder(intake)
    assert not adder.add_next()
    assert (read(intake, job).state, read(intake, job).error) == (
        "running",
        "the disk of the service is full or not writable",
    )
    time.sleep(adders.MIN_PAUSE)
    assert adder.add_next()
    assert (read(intake, job).state, read(intake, job).error) == ("done", None)


def test_a_job_that_can_never_be_done_fails_and_the_next_goes_on(intake: Intake, shelf: Shelf) -> None:
    shelf.faults = [MissingWeights("no weights in /secret/place")]
    first, second = promise(intake, "a"), promise(intake, "b")
    adder = BatchAdder(intake)
    assert adder.add_next() and adder.add_next()
    assert (read(intake, first).state, read(intake, second).state) == ("failed", "done")
    assert "/secret" not in str(read(intake, first).serialize())


def test_one_image_that_breaks_the_encoder_costs_only_itself(intake: Intake, shelf: Shelf) -> None:
    shelf.unbearable = b"odd"
    job = intake.add([arrive("a"), arrive("odd"), arrive("b"), arrive("bad")])
    assert BatchAdder(intake).add_next()
    done = read(intake, job.id)
    assert set(shelf.images) == {"a", "b"}
    assert [(one.path, one.reason) for one in done.skipped] == [("odd", "it could not be encoded"), ("bad", "bad")]
    assert done.state == "done"


def test_what_was_stored_before_a_crash_is_not_counted_as_an_update(intake: Intake, shelf: Shelf) -> None:
    job = promise(intake, "a")
    items = intake.queue.claim(32)
    shelf.add([items[0].ref(intake.uploads.path(items[0].image.sha256))])  # stored, but not noted: a crash
    assert BatchAdder(intake).add_next()
    done = read(intake, job)
    assert (done.added, done.updated, done.state) == (1, 0, "done")


def test_a_file_of_the_same_name_and_other_content_replaces_nothing(intake: Intake, shelf: Shelf) -> None:
    intake.add([arrive("a.jpg", b"one")])
    BatchAdder(intake).add_next()
    intake.add([arrive("a.jpg", b"two")])
    intake.add([arrive("a.jpg", b"two")])
    intake.add([arrive("a.jpg", b"one")])
    adder = BatchAdder(intake)
    while adder.add_next():
        pass
    assert sorted(shelf.images) == sorted(["a.jpg", f"a-{hashlib.sha256(b'two').hexdigest()[:8]}.jpg"])


def test_an_upload_whose_disk_is_full_promises_nothing(intake: Intake) -> None:
    def fail() -> bytes:
        raise StorageError("full")

    with pytest.raises(StorageError):
        intake.add([arrive("a"), ReceivedFile("b", "f" * 64, fail, 1)])
    assert intake.store.list_jobs() == [] and not intake.queue.has_work()
    assert sweep(intake) == 1


def test_attributes_are_replaced_as_a_whole_and_the_file_stays(intake: Intake, shelf: Shelf) -> None:
    intake.add([arrive("a", label="x", year=1)])
    BatchAdder(intake).add_next()
    path = shelf.images["a"].path
    job = intake.update("a", None, {"year": 2})
    BatchAdder(intake).add_next()
    assert (shelf.images["a"].path, shelf.images["a"].attributes) == (path, {"year": 2})
    assert (read(intake, job.id).kind, read(intake, job.id).updated) == ("update", 1)


def test_a_file_outside_of_the_uploads_is_described_anew_where_it_lies(intake: Intake, shelf: Shelf) -> None:
    outside = shelf.path / "own.jpg"
    outside.write_bytes(b"own")
    shelf.add([ImageRef("own", outside, attributes={"label": "x", "box": "1,2,3,4"})])
    intake.update("own", None, {})
    item = intake.queue.claim(1)[0]
    unsaid = frozenset({"lat", "lon", "heading"})
    assert item.ref(Path("unused")) == ImageRef("own", outside, (1.0, 2.0, 3.0, 4.0), {}, unsaid=unsaid)


def test_another_file_keeps_the_attributes_and_the_old_upload_goes(intake: Intake, shelf: Shelf) -> None:
    intake.add([arrive("a", b"one", label="x")])
    BatchAdder(intake).add_next()
    intake.update("a", arrive("other.jpg", b"two"), None)
    assert sweep(intake) == 0, "the old file is in use until the new one is stored"
    BatchAdder(intake).add_next()
    assert (shelf.images["a"].path.read_bytes(), shelf.images["a"].attributes) == (b"two", {"label": "x"})
    assert sweep(intake) == 1


def test_an_image_that_waits_can_be_changed_and_is_added_once(intake: Intake, shelf: Shelf) -> None:
    intake.add([arrive("a", b"one", label="x")])
    intake.update("a", None, {"label": "y"})
    adder = BatchAdder(intake)
    while adder.add_next():
        pass
    assert shelf.portions == [["a"]] and shelf.images["a"].attributes == {"label": "y"}


def test_an_unknown_image_cannot_be_changed(intake: Intake) -> None:
    with pytest.raises(ApiError) as refused:
        intake.update("a", None, {})
    assert refused.value.status == 404 and intake.store.list_jobs() == []


def test_a_delete_removes_what_is_stored_and_what_waits(intake: Intake, shelf: Shelf) -> None:
    promise(intake, "a", "b")
    BatchAdder(intake).add_next()
    job = promise(intake, "c", "d")
    removal = intake.delete(["a", "c", "x", "a"], patience=0)
    assert (removal.removed, removal.missing) == (2, ("x",))
    BatchAdder(intake).add_next()
    assert set(shelf.images) == {"b", "d"}
    assert [one.path for one in read(intake, job).skipped] == ["c"]


def test_a_delete_that_gets_no_turn_changes_nothing(intake: Intake, shelf: Shelf) -> None:
    promise(intake, "a")
    with hold_write_lock(intake.uploads.folder, 0), pytest.raises(CollectionBusy):
        intake.delete(["a"], patience=0.05)
    with writer_lock(shelf.path):
        shelf.images["b"] = shelf._record(ImageRef("b", intake.uploads.save([b"b"])[0]))
        with pytest.raises(CollectionBusy):
            intake.delete(["a", "b"], patience=0.05)
    BatchAdder(intake).add_next()
    assert set(shelf.images) == {"a", "b"}


def test_a_delete_gets_its_turn_while_a_job_runs(intake: Intake, shelf: Shelf) -> None:
    promise(intake, *(f"{number}" for number in range(200)))
    adder, ended = BatchAdder(intake), threading.Event()

    def work() -> None:
        while adder.add_next():
            time.sleep(0.06)
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    while "3" not in shelf.images:
        time.sleep(0.005)
    removal = intake.delete(["3", "199"], patience=5)
    assert removal.removed == 2 and not ended.is_set()
    thread.join()
    assert len(shelf.images) == 198 and not {"3", "199"} & set(shelf.images)


def test_an_update_does_not_build_on_a_file_that_never_came(intake: Intake, shelf: Shelf) -> None:
    """A process that dies while it receives leaves a job that nobody was told of."""
    intake.add([arrive("a", b"one", label="x")])
    BatchAdder(intake).add_next()
    lost = PendingImage("a", "a.jpg", "f" * 64, 7, {"label": "lost"})
    intake.store.receive("update", lambda _: ([lost], []))
    job = intake.update("a", None, {"label": "y"})
    BatchAdder(intake).add_next()
    assert (shelf.images["a"].path.read_bytes(), shelf.images["a"].attributes) == (b"one", {"label": "y"})
    assert read(intake, job.id).updated == 1


def test_a_delete_does_not_wait_for_images_that_are_being_encoded_and_they_stay_deleted(
    intake: Intake, shelf: Shelf
) -> None:
    shelf.add([ImageRef("old", intake.uploads.save([b"old"])[0])])
    job = promise(intake, "a", "b")
    shelf.when_encoding = lambda: gone.append(intake.delete(["a", "old"], patience=0).removed)
    gone: list[int] = []
    assert BatchAdder(intake).add_next()
    assert gone == [2] and set(shelf.images) == {"b"}
    assert [one.path for one in read(intake, job).skipped] == ["a"] and read(intake, job).state == "done"


def test_an_image_that_is_deleted_right_after_it_was_stored_is_not_recorded_as_there(
    intake: Intake, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = promise(intake, "a")

    def prepare() -> Shelf:
        monkeypatch.undo()
        intake.delete(["a"], patience=0)
        return shelf

    monkeypatch.setattr(shelf, "prepare", prepare)
    assert BatchAdder(intake).add_next()
    assert (read(intake, job).state, read(intake, job).added, shelf.images) == ("done", 0, {})
    shelf.go_back({}, 1)
    assert intake.requeue_lost() == 0 and sweep(intake) == 1


def test_only_one_worker_of_all_processes_has_the_turn(intake: Intake, shelf: Shelf) -> None:
    promise(intake, "a")
    other = Intake("photos", cast(Collection, shelf))
    shelf.when_encoding = lambda: worked.append(BatchAdder(other).add_next())
    worked: list[bool] = []
    assert BatchAdder(intake).add_next()
    assert worked == [False] and shelf.portions == [["a"]]
    other.close()


def test_nothing_is_encoded_while_another_program_writes(intake: Intake, shelf: Shelf) -> None:
    promise(intake, "a")
    shelf.when_encoding = lambda: pytest.fail("in vain")
    with writer_lock(shelf.path):
        assert not BatchAdder(intake).add_next()
