import threading
import time
from collections.abc import Iterator

import pytest
from builders import fill_picture, global_rows

from resight.encode import extract as extraction
from resight.encode.extract import extract, read_ahead
from resight.types import Descriptors, Picture


def encode(picture: Picture) -> tuple[Descriptors, ...]:
    return (global_rows([picture.ref.id], [[picture.pixels.shape[1], picture.pixels.mean()]]),)


def reading_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "read-ahead"]


def wait_for(seen: list[int], count: int) -> int:
    """How many items were made, once `count` are there and any further one has had its time."""
    patience = time.monotonic() + 10
    while len(seen) < count and time.monotonic() < patience:
        time.sleep(0.005)
    time.sleep(0.05)
    return len(seen)


def test_batches_are_written_in_order_and_the_last_may_be_short():
    written: list[list[str]] = []
    pictures = [fill_picture(4, 4, str(number)) for number in range(7)]
    extract(pictures, encode, lambda batch: written.append([picture.ref.id for picture, _ in batch]), batch=3)
    assert written == [["0", "1", "2"], ["3", "4", "5"], ["6"]]


def test_a_batch_that_is_just_full_is_written_once():
    written: list[int] = []
    extract([fill_picture(4, 4)] * 4, encode, lambda batch: written.append(len(batch)), batch=2)
    assert written == [2, 2]


def test_no_pictures_write_nothing():
    extract([], encode, lambda batch: pytest.fail(f"wrote {batch}"))


def test_rows_are_made_from_the_pixels_and_the_pixels_are_not_kept():
    written = []
    extract([fill_picture(6, 4, grey=50)], encode, written.extend)
    ((picture, (rows,)),) = written
    assert rows.vectors.tolist() == [[6, 50]]
    assert picture.pixels.size == 0
    assert picture.size == (6, 4)


def test_what_was_full_is_written_before_a_later_picture_fails():
    def pictures() -> Iterator[Picture]:
        yield from (fill_picture(4, 4, name) for name in "abc")
        raise OSError("the disk is gone")

    written: list[list[str]] = []
    with pytest.raises(OSError, match="the disk is gone"):
        extract(pictures(), encode, lambda batch: written.append([picture.ref.id for picture, _ in batch]), batch=2)
    assert written == [["a", "b"]]


def test_an_encoder_that_fails_stops_the_reading():
    def fail(picture: Picture) -> tuple[Descriptors, ...]:
        raise RuntimeError(f"cannot encode {picture.ref.id}")

    with pytest.raises(RuntimeError, match="cannot encode a"):
        extract((fill_picture(4, 4, "a") for _ in range(1000)), fail, lambda _: None)
    assert reading_threads() == []


def test_the_loop_reads_no_further_ahead_than_it_says():
    assert extraction.AHEAD <= 8


def test_reading_ahead_gives_the_same_items_in_order():
    assert list(read_ahead(range(50), 3)) == list(range(50))
    assert list(read_ahead([None, False, 0], 1)) == [None, False, 0]
    assert reading_threads() == []


def test_reading_happens_in_another_thread():
    names = list(read_ahead((threading.current_thread().name for _ in range(1)), 1))
    assert names == ["read-ahead"]


def test_an_exception_of_the_producer_is_raised_after_its_items():
    def produce() -> Iterator[int]:
        yield 1
        raise KeyError("lost")

    items = read_ahead(produce(), 4)
    assert next(items) == 1
    with pytest.raises(KeyError, match="lost"):
        next(items)
    assert reading_threads() == []


def test_an_item_that_is_an_exception_is_an_item():
    error = ValueError("not raised")
    assert list(read_ahead([error], 1)) == [error]


def test_leaving_early_ends_the_thread_even_when_it_waits_for_room():
    made: list[int] = []
    items = read_ahead((made.append(number) or number for number in range(10_000)), 2)
    assert next(items) == 0
    wait_for(made, 4)
    (thread,) = reading_threads()
    items.close()
    assert not thread.is_alive()
    assert len(made) < 10


def test_no_more_than_depth_items_wait_for_a_slow_consumer():
    made: list[int] = []
    items = read_ahead((made.append(number) or number for number in range(10_000)), 3)
    next(items)
    # One is with the consumer, three wait, and the producer holds one that has no room yet.
    assert wait_for(made, 5) == 5
    next(items)
    assert wait_for(made, 6) == 6
    items.close()
