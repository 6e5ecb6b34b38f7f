import threading
import time
from collections.abc import Iterator

import pytest
from builders import fill_picture, global_rows

from resight.encode.extract import encode_ahead, extract
from resight.types import Descriptors, Picture


def encode(picture: Picture) -> tuple[Descriptors, ...]:
    return (global_rows([picture.ref.id], [[picture.pixels.shape[1], picture.pixels.mean()]]),)


def encode_early_ones_slowly(picture: Picture) -> tuple[Descriptors, ...]:
    time.sleep(0.02 * (3 - int(picture.ref.id) % 4))
    return encode(picture)


def number_pictures(count: int, log: list[int] | None = None) -> Iterator[Picture]:
    for number in range(count):
        if log is not None:
            log.append(number)
        yield fill_picture(4, 4, str(number))


def list_workers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("encode")]


def test_batches_are_written_in_order_and_the_last_may_be_short():
    written: list[list[str]] = []
    extract(number_pictures(7), encode, lambda batch: written.append([picture.ref.id for picture, _ in batch]), batch=3)
    assert written == [["0", "1", "2"], ["3", "4", "5"], ["6"]]


def test_a_batch_that_is_just_full_is_written_once():
    written: list[int] = []
    extract(number_pictures(4), encode, lambda batch: written.append(len(batch)), batch=2)
    assert written == [2, 2]


def test_no_pictures_write_nothing():
    extract([], encode, lambda batch: pytest.fail(f"wrote {batch}"))


def test_batches_that_were_handed_over_are_not_used_again():
    batches: list[list] = []
    extract(number_pictures(4), encode, batches.append, batch=2)
    assert [len(batch) for batch in batches] == [2, 2]


def test_rows_are_made_from_the_pixels_and_the_pixels_are_not_kept():
    written = []
    extract([fill_picture(6, 4, grey=50)], encode, written.extend)
    ((picture, (rows,)),) = written
    assert rows.vectors.tolist() == [[6, 50]]
    assert picture.pixels.size == 0
    assert picture.size == (6, 4)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_the_order_is_that_of_the_pictures_however_long_each_takes(workers: int):
    encoded = list(encode_ahead(number_pictures(12), encode_early_ones_slowly, workers))
    assert [picture.ref.id for picture, _ in encoded] == [str(number) for number in range(12)]
    assert [rows[0].ids for _, rows in encoded] == [(str(number),) for number in range(12)]


def test_as_many_pictures_are_encoded_at_once_as_there_are_workers():
    meeting = threading.Barrier(3)

    def meet(picture: Picture) -> tuple[Descriptors, ...]:
        meeting.wait(timeout=10)
        return encode(picture)

    assert len(list(encode_ahead(number_pictures(6), meet, workers=3))) == 6


@pytest.mark.parametrize("workers", [1, 3])
def test_no_more_than_two_pictures_a_worker_are_read_ahead(workers: int):
    read: list[int] = []
    encoded = encode_ahead(number_pictures(100, read), encode, workers)
    for taken in range(1, 10):
        next(encoded)
        assert len(read) - taken < 2 * workers
    encoded.close()


def test_what_was_full_is_written_before_a_later_picture_fails():
    def fail_at_the_end() -> Iterator[Picture]:
        yield from number_pictures(4)
        raise OSError("the disk is gone")

    written: list[list[str]] = []
    with pytest.raises(OSError, match="the disk is gone"):
        extract(
            fail_at_the_end(),
            encode,
            lambda batch: written.append([picture.ref.id for picture, _ in batch]),
            batch=2,
            workers=1,
        )
    assert written == [["0", "1"]]
    assert list_workers() == []


def test_an_error_of_the_encoder_is_raised_and_stops_the_reading():
    def fail(picture: Picture) -> tuple[Descriptors, ...]:
        raise RuntimeError(f"cannot encode {picture.ref.id}")

    read: list[int] = []
    with pytest.raises(RuntimeError, match="cannot encode 0"):
        extract(number_pictures(1000, read), fail, lambda _: None, workers=2)
    assert len(read) <= 4
    assert list_workers() == []


def test_an_error_of_the_writer_is_raised_and_ends_the_workers():
    def fail(batch: list) -> None:
        raise OSError(f"no room for {len(batch)}")

    with pytest.raises(OSError, match="no room for 2"):
        extract(number_pictures(1000), encode, fail, batch=2, workers=2)
    assert list_workers() == []


def test_leaving_early_ends_the_workers_and_drops_what_waits():
    started: list[str] = []

    def encode_all_but_the_first_slowly(picture: Picture) -> tuple[Descriptors, ...]:
        started.append(picture.ref.id)
        time.sleep(0 if picture.ref.id == "0" else 0.3)
        return encode(picture)

    encoded = encode_ahead(number_pictures(1000), encode_all_but_the_first_slowly, workers=2)
    next(encoded)
    encoded.close()
    assert list_workers() == []
    assert "3" not in started
