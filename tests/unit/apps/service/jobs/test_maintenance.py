"""What is removed when nothing refers to it any more, and when a collection is tidied."""

import time
from typing import cast

import pytest
from support.shelf import Shelf, arrive, promise

from resight.apps.service.jobs import maintenance
from resight.apps.service.jobs.intake import Intake
from resight.apps.service.jobs.maintenance import QUIET, Housekeeper, sweep
from resight.apps.service.jobs.models import Arrival
from resight.apps.service.jobs.worker import Adder
from resight.errors import CollectionBusy, CollectionError
from resight.store import ImageRecord


def test_a_sweep_keeps_what_images_jobs_and_arriving_files_need(intake: Intake) -> None:
    promise(intake, "stored")
    Adder(intake).add_next()
    promise(intake, "waiting")
    arriving = arrive("arriving")

    def arrive_while_swept() -> bytes:
        intake.uploads.keep([b"arriving"])
        assert sweep(intake) == 1
        return b"arriving"

    intake.uploads.keep([b"left over"])
    intake.add([Arrival("arriving", arriving.sha256, arrive_while_swept, 8)])
    left = {intake.uploads.path(sha256).read_bytes() for sha256 in intake.uploads.list_hashes()}
    assert left == {b"stored", b"waiting", b"arriving"}


def test_the_upload_of_a_deleted_image_stays_while_another_image_uses_it(intake: Intake) -> None:
    intake.add([arrive("a", b"same"), arrive("b", b"same")])
    Adder(intake).add_next()
    intake.delete(["a"], patience=0)
    assert sweep(intake) == 0
    intake.delete(["b"], patience=0)
    assert sweep(intake) == 1


class FakeTidier:
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


def test_tidying_waits_for_enough_changes_and_is_not_repeated_soon(intake: Intake) -> None:
    tidier = FakeTidier()
    keeper = Housekeeper(intake, sweep_every=0.05, tidier=tidier)
    intake.writes = maintenance.FEW - 1
    keeper.work(idle=QUIET)
    assert tidier.started == 0
    intake.writes = maintenance.FEW
    keeper.work(idle=0.0)
    assert tidier.started == 0
    keeper.work(idle=QUIET)
    intake.writes += maintenance.FEW
    for _ in range(3):
        keeper.work(idle=QUIET)
    assert tidier.started == 1
    time.sleep(0.06)
    keeper.work(idle=QUIET)
    assert tidier.started == 2


@pytest.mark.parametrize(("images", "enough"), [(10, maintenance.MANY), (20_000, 625)])
def test_while_somebody_searches_tidying_waits_for_more_changes_in_a_larger_collection(
    intake: Intake, shelf: Shelf, images: int, enough: int
) -> None:
    shelf.images = dict.fromkeys(map(str, range(images)), cast(ImageRecord, None))
    intake.littered.clear()
    tidier = FakeTidier()
    keeper = Housekeeper(intake, tidier=tidier)
    intake.littered.clear()
    intake.writes = enough - 1
    keeper.work(idle=0.0)
    keeper.work(idle=QUIET - 1)
    assert tidier.started == 0
    intake.writes = enough
    keeper.work(idle=0.0)
    assert tidier.started == 1


def test_nothing_is_tidied_twice_at_once(intake: Intake) -> None:
    tidier = FakeTidier()
    tidier.is_done = False
    keeper = Housekeeper(intake, sweep_every=0.0, tidier=tidier)
    for _ in range(3):
        intake.writes += maintenance.MANY
        keeper.work(idle=QUIET)
    assert tidier.started == 1
    tidier.is_done = True
    keeper.work(idle=QUIET)
    keeper.work(idle=QUIET)
    assert tidier.started == 2


def test_a_collection_that_nobody_uploads_to_gets_no_new_files(intake: Intake, shelf: Shelf) -> None:
    assert not Adder(intake).add_next()
    Housekeeper(intake).work(idle=QUIET)
    assert list(shelf.path.iterdir()) == []


@pytest.mark.parametrize("error", [CollectionBusy("somebody writes"), CollectionError("damaged")])
def test_tidying_that_failed_is_tried_again_without_further_changes(intake: Intake, error: CollectionError) -> None:
    tidier = FakeTidier()
    tidier.fault = error
    keeper = Housekeeper(intake, sweep_every=0.0, tidier=tidier)
    intake.writes = maintenance.FEW
    for _ in range(2):
        keeper.work(idle=QUIET)
    assert tidier.started == 1
    for _ in range(4):
        keeper.work(idle=QUIET)
    assert tidier.started == 2, "the second time it was done"
