"""Orphaned uploads are removed, and collections compacted."""

import time
from typing import cast

import pytest
from support.shelf import Shelf, arrive, promise

from resight.apps.service.jobs import maintenance
from resight.apps.service.jobs.intake import Intake
from resight.apps.service.jobs.maintenance import IDLE, Maintenance, sweep
from resight.apps.service.jobs.models import ReceivedFile
from resight.apps.service.jobs.worker import BatchAdder
from resight.errors import CollectionBusy, CollectionError
from resight.store import ImageRecord


def test_a_sweep_keeps_what_images_jobs_and_arriving_files_need(intake: Intake) -> None:
    promise(intake, "stored")
    BatchAdder(intake).add_next()
    promise(intake, "waiting")
    arriving = arrive("arriving")

    def arrive_while_swept() -> bytes:
        intake.uploads.save([b"arriving"])
        assert sweep(intake) == 1
        return b"arriving"

    intake.cancel(promise(intake, "cancelled"))
    intake.add([ReceivedFile("arriving", arriving.sha256, arrive_while_swept, 8)])
    left = {intake.uploads.path(sha256).read_bytes() for sha256 in intake.uploads.list_hashes()}
    assert left == {b"stored", b"waiting", b"arriving"}


def test_the_upload_of_a_deleted_image_stays_while_another_image_uses_it(intake: Intake) -> None:
    intake.add([arrive("a", b"same"), arrive("b", b"same")])
    BatchAdder(intake).add_next()
    intake.delete(["a"], patience=0)
    assert sweep(intake) == 0
    intake.delete(["b"], patience=0)
    assert sweep(intake) == 1


class FakeCompactor:
    """Takes no time, and is done when told; a `fault` is what it ends with once."""

    def __init__(self) -> None:
        self.started = 0
        self.is_busy = False
        self.is_done = True
        self.fault: Exception | None = None

    def start(self) -> None:
        self.started += 1
        self.is_busy = True

    def poll(self) -> float | None:
        if not self.is_done:
            return None
        self.is_busy = False
        fault, self.fault = self.fault, None
        if fault:
            raise fault
        return 0.0

    def stop(self) -> None:
        self.is_busy = False


def test_compaction_waits_for_enough_changes_and_is_not_repeated_soon(intake: Intake) -> None:
    compactor = FakeCompactor()
    upkeep = Maintenance(intake, sweep_interval=0.05, compactor=compactor)
    intake.writes = maintenance.FEW - 1
    upkeep.work(idle=IDLE)
    assert compactor.started == 0
    intake.writes = maintenance.FEW
    upkeep.work(idle=0.0)
    assert compactor.started == 0
    upkeep.work(idle=IDLE)
    intake.writes += maintenance.FEW
    for _ in range(3):
        upkeep.work(idle=IDLE)
    assert compactor.started == 1
    time.sleep(0.06)
    upkeep.work(idle=IDLE)
    assert compactor.started == 2


@pytest.mark.parametrize(("images", "enough"), [(10, maintenance.MANY), (20_000, 625)])
def test_while_somebody_searches_compaction_waits_for_more_changes_in_a_larger_collection(
    intake: Intake, shelf: Shelf, images: int, enough: int
) -> None:
    shelf.images = dict.fromkeys(map(str, range(images)), cast(ImageRecord, None))
    intake.has_orphans.clear()
    compactor = FakeCompactor()
    upkeep = Maintenance(intake, compactor=compactor)
    intake.has_orphans.clear()
    intake.writes = enough - 1
    upkeep.work(idle=0.0)
    upkeep.work(idle=IDLE - 1)
    assert compactor.started == 0
    intake.writes = enough
    upkeep.work(idle=0.0)
    assert compactor.started == 1


def test_nothing_is_compacted_twice_at_once(intake: Intake) -> None:
    compactor = FakeCompactor()
    compactor.is_done = False
    upkeep = Maintenance(intake, sweep_interval=0.0, compactor=compactor)
    for _ in range(3):
        intake.writes += maintenance.MANY
        upkeep.work(idle=IDLE)
    assert compactor.started == 1
    compactor.is_done = True
    upkeep.work(idle=IDLE)
    upkeep.work(idle=IDLE)
    assert compactor.started == 2


def test_a_collection_that_nobody_uploads_to_gets_no_new_files(intake: Intake, shelf: Shelf) -> None:
    assert not BatchAdder(intake).add_next()
    Maintenance(intake).work(idle=IDLE)
    assert list(shelf.path.iterdir()) == []


@pytest.mark.parametrize("error", [CollectionBusy("somebody writes"), CollectionError("damaged")])
def test_compaction_that_failed_is_tried_again_without_further_changes(intake: Intake, error: CollectionError) -> None:
    compactor = FakeCompactor()
    compactor.fault = error
    upkeep = Maintenance(intake, sweep_interval=0.0, compactor=compactor)
    intake.writes = maintenance.FEW
    for _ in range(2):
        upkeep.work(idle=IDLE)
    assert compactor.started == 1
    for _ in range(4):
        upkeep.work(idle=IDLE)
    assert compactor.started == 2, "the second time it was done"
