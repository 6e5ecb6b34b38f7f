import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest
from support.builders import fill_picture, global_rows

from resight.encode.extract import Encode, Encoded, SharedLimit, encode_ahead, extract
from resight.types import Descriptors, Picture, Skipped


def describe(picture: Picture) -> tuple[Descriptors, ...]:
    return (global_rows([picture.ref.id], [[picture.pixels.shape[1], picture.pixels.mean()]]),)


def encode(pictures: Sequence[Picture]) -> list[tuple[Descriptors, ...]]:
    return [describe(picture) for picture in pictures]


def encode_early_ones_slowly(pictures: Sequence[Picture]) -> list[tuple[Descriptors, ...]]:
    time.sleep(0.02 * (3 - int(pictures[0].ref.id) % 4))
    return encode(pictures)


def take(picture: Picture) -> Picture:
    """A source that is a picture already needs no reading."""
    return picture


def refuse_to_skip(skipped: Skipped) -> None:
    pytest.fail(f"skipped {skipped}")


def run(sources: Iterable[Picture], encode: Encode, write: Callable[[list[Encoded]], None], **how: int) -> None:
    extract(sources, take, encode, write, refuse_to_skip, **how)


def number_pictures(count: int, log: list[int] | None = None) -> Iterator[Picture]:
    for number in range(count):
        if log is not None:
            log.append(number)
        yield fill_picture(4, 4, str(number))


def list_workers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(("read", "encode"))]


def test_batches_are_written_in_order_and_the_last_may_be_short():
    written: list[list[str]] = []
    run(number_pictures(7), encode, lambda batch: written.append([picture.ref.id for picture, _ in batch]), batch=3)
    assert written == [["0", "1", "2"], ["3", "4", "5"], ["6"]]


def test_a_batch_that_is_just_full_is_written_once():
    written: list[int] = []
    run(number_pictures(4), encode, lambda batch: written.append(len(batch)), batch=2)
    assert written == [2, 2]


def test_no_pictures_write_nothing():
    run([], encode, lambda batch: pytest.fail(f"wrote {batch}"))


def test_batches_that_were_handed_over_are_not_used_again():
    batches: list[list] = []
    run(number_pictures(4), encode, batches.append, batch=2)
    assert [len(batch) for batch in batches] == [2, 2]


def test_rows_are_made_from_the_pixels_and_the_pixels_are_not_kept():
    written = []
    run([fill_picture(6, 4, grey=50)], encode, written.extend)
    ((picture, (rows,)),) = written
    assert rows.vectors.tolist() == [[6, 50]]
    assert picture.pixels.size == 0
    assert picture.size == (6, 4)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_the_order_is_that_of_the_pictures_however_long_each_takes(workers: int):
    encoded = list(encode_ahead(number_pictures(12), take, encode_early_ones_slowly, 1, workers))
    assert [picture.ref.id for picture, _ in encoded] == [str(number) for number in range(12)]
    assert [rows[0].ids for _, rows in encoded] == [(str(number),) for number in range(12)]


def test_as_many_pictures_are_encoded_at_once_as_there_are_workers():
    meeting = threading.Barrier(3)

    def meet(pictures: Sequence[Picture]) -> list[tuple[Descriptors, ...]]:
        meeting.wait(timeout=10)
        return encode(pictures)

    assert len(list(encode_ahead(number_pictures(6), take, meet, 1, workers=3))) == 6


def test_as_many_pictures_are_read_at_once_as_there_are_workers():
    meeting = threading.Barrier(3)

    def meet(picture: Picture) -> Picture:
        meeting.wait(timeout=10)
        return picture

    assert len(list(encode_ahead(number_pictures(6), meet, encode, 1, workers=3))) == 6


def test_so_many_pictures_are_encoded_together_and_the_last_may_be_fewer():
    sizes: list[int] = []

    def note(pictures: Sequence[Picture]) -> list[tuple[Descriptors, ...]]:
        sizes.append(len(pictures))
        return encode(pictures)

    encoded = list(encode_ahead(number_pictures(7), take, note, 3, workers=1))
    assert sizes == [3, 3, 1]
    assert [picture.ref.id for picture, _ in encoded] == [str(number) for number in range(7)]


def test_what_cannot_be_read_is_told_at_its_place_and_the_others_go_on():
    def read(picture: Picture) -> Picture | Skipped:
        return Skipped(picture.ref.id, "odd") if int(picture.ref.id) % 2 else picture

    told: list[str] = []
    extract(
        number_pictures(5),
        read,
        encode,
        lambda batch: told.extend(picture.ref.id for picture, _ in batch),
        lambda skipped: told.append(f"{skipped.path} {skipped.reason}"),
        batch=1,
        together=2,
    )
    assert told == ["0", "1 odd", "2", "3 odd", "4"]


@pytest.mark.parametrize("workers", [1, 3])
def test_no_more_than_three_pictures_a_worker_are_in_flight(workers: int):
    read: list[int] = []
    encoded = encode_ahead(number_pictures(100, read), take, encode, 1, workers)
    for taken in range(1, 10):
        next(encoded)
        assert len(read) - taken <= 3 * workers
    encoded.close()


def test_what_was_full_is_written_before_a_later_picture_fails():
    def fail_at_the_end() -> Iterator[Picture]:
        yield from number_pictures(4)
        raise OSError("the disk is gone")

    written: list[list[str]] = []
    with pytest.raises(OSError, match="the disk is gone"):
        run(
            fail_at_the_end(),
            encode,
            lambda batch: written.append([picture.ref.id for picture, _ in batch]),
            batch=2,
            workers=1,
        )
    assert written == [["0", "1"]]
    assert list_workers() == []


def test_an_error_of_the_encoder_is_raised_and_stops_the_reading():
    def fail(pictures: Sequence[Picture]) -> list[tuple[Descriptors, ...]]:
        raise RuntimeError(f"cannot encode {pictures[0].ref.id}")

    read: list[int] = []
    with pytest.raises(RuntimeError, match="cannot encode 0"):
        run(number_pictures(1000, read), fail, lambda _: None, workers=2)
    assert len(read) <= 7
    assert list_workers() == []


def test_an_error_of_the_writer_is_raised_and_ends_the_workers():
    def fail(batch: list) -> None:
        raise OSError(f"no room for {len(batch)}")

    with pytest.raises(OSError, match="no room for 2"):
        run(number_pictures(1000), encode, fail, batch=2, workers=2)
    assert list_workers() == []


def test_leaving_early_ends_the_workers_and_drops_what_waits():
    started: list[str] = []

    def encode_all_but_the_first_slowly(pictures: Sequence[Picture]) -> list[tuple[Descriptors, ...]]:
        started.append(pictures[0].ref.id)
        time.sleep(0 if pictures[0].ref.id == "0" else 0.3)
        return encode(pictures)

    encoded = encode_ahead(number_pictures(1000), take, encode_all_but_the_first_slowly, 1, workers=2)
    next(encoded)
    encoded.close()
    assert list_workers() == []
    assert "3" not in started


def test_runs_that_overlap_lift_their_limit_at_the_last_end() -> None:
    threads = [8]
    limit = SharedLimit()

    def set_limit() -> Callable[[], None]:
        before, threads[0] = threads[0], 1
        return lambda: threads.__setitem__(0, before)

    first, second = limit.hold(set_limit), limit.hold(set_limit)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert threads == [1]
    second.__exit__(None, None, None)
    assert threads == [8]
