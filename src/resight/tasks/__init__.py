"""What the commands do, as functions: `resight.dedup(...)`, `match`, `lookalikes`, `audit`, `train`, `locate`, `plan`.

One module per function, named like its command, which reads the options, calls it and prints what it returns. A
collection may be given as a `Collection` or as its path.
"""

import math
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING

from resight.errors import InputError

if TYPE_CHECKING:
    from resight.collection import Collection


def open_existing(collection: "Collection | str | Path") -> "Collection":
    """The collection itself, or the one at this path."""
    from resight.collection import Collection, open_collection

    return collection if isinstance(collection, Collection) else open_collection(collection, must_exist=True)


def check_number(name: str, value: object, low: float, high: float = math.inf, *, whole: bool = False) -> None:
    """Refuse an argument that is no number from `low` to `high`."""
    if isinstance(value, Integral if whole else Real) and low <= float(value) <= high:
        return
    span = f"from {low:g} to {high:g}" if math.isfinite(high) else f"of {low:g} or more"
    raise InputError(
        f"{name} = {value!r} cannot be used",
        expected=f"a {'whole ' if whole else ''}number {span}",
        actual=repr(value),
        fix="correct it",
    )


@contextmanager
def keep_work(out: Path | None) -> Iterator[Path]:
    """A folder for logs by which a stopped run continues; an error leaves it beside `out`, if that is given."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="resight-") as scratch:
            yield Path(scratch)
        return
    work = out.with_name(f"{out.name}.work")
    work.mkdir(parents=True, exist_ok=True)
    yield work
    shutil.rmtree(work, ignore_errors=True)
