"""Errors of Lance as errors of resight: reading, writing, a full disk, a panic of its Rust code."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from resight.errors import CollectionError, ResightError, StorageError

UNREADABLE = (ValueError, RuntimeError, OSError, KeyError, IndexError, OverflowError, MemoryError)
ORIGIN = re.compile(r", \S+\.rs:\d+.*", re.DOTALL)  # the lines of Lance's own source that end its messages
FULL = ("No space left", "os error 28", "quota exceeded", "os error 122")
EXHAUSTED = ("Too many open files", "os error 24", "os error 23")


def is_panic(error: BaseException) -> bool:
    """Whether Lance's Rust code has panicked; that error is no Exception, and its class has no public name."""
    return type(error).__name__ == "PanicException"


def is_exhausted(error: BaseException) -> bool:
    """Whether this process has too many open files; that says nothing about the file."""
    return any(sign in str(error) for sign in EXHAUSTED)


@contextmanager
def reading() -> Iterator[None]:
    """Report what Lance raises while it reads."""
    try:
        yield
    except ResightError:
        raise
    except BaseException as error:
        if isinstance(error, UNREADABLE) or is_panic(error):
            raise report_unreadable(error) from error
        raise


@contextmanager
def writing() -> Iterator[None]:
    """Report what Lance raises while it writes."""
    try:
        yield
    except ResightError:
        raise
    except BaseException as error:
        if not (isinstance(error, (RuntimeError, OSError, ValueError)) or is_panic(error)):
            raise
        full = any(sign in str(error) for sign in FULL)
        raise StorageError(
            "the disk is full" if full else "the collection cannot be written",
            expected="room for the new images" if full else "a folder that can be written to",
            actual=summarise(error),
            fix=("free some space" if full else "check the disk and the permissions")
            + " and do it again; nothing that was reported as stored is lost",
        ) from error


def report_unreadable(error: BaseException) -> ResightError:
    text = summarise(error)
    if is_exhausted(error):
        return StorageError(
            "the collection cannot be read: this process has too many open files",
            expected="room for a few dozen more",
            actual=text,
            fix="raise the limit (ulimit -n), or close files; the collection is not damaged",
        )
    return CollectionError(
        "the collection cannot be read",
        expected="the files of one of its states",
        actual=text,
        fix="open it again: another process may have compacted or removed it; if that fails too, its files are "
        "damaged: `resight verify COLLECTION` names them",
    )


def summarise(error: BaseException) -> str:
    """What went wrong, in one line, without the places in Lance's source."""
    return ORIGIN.sub("", str(error)).partition("\n")[0]
