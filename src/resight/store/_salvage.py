"""Save the whole rows of a damaged fragment: run in a process of its own, for Lance may crash on such a file.

    python -m resight.store._salvage TABLE VERSION FRAGMENT OUT

Reads the fragment in ever smaller portions and writes the rows whose checksums hold to OUT, an Arrow file. Memory is
limited: a damaged length may ask for any amount.
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow

from resight.store._arrow import find_damaged_rows, read_layout

pa: Any = pyarrow
PORTION = 64  # rows
MEMORY = 4 << 30  # bytes of address space
PATIENCE = 600  # seconds


def salvage(table: Path, version: int, fragment: int, out: Path) -> Any | None:
    """The whole rows of a fragment as an arrow table; None if nothing could be read."""
    command = [sys.executable, "-P", "-m", __name__, str(table), str(version), str(fragment), str(out)]
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE, check=False)
    return _read_stream(out)


def _read_stream(path: Path) -> Any | None:
    """The portions that were written before the process ended, or was killed."""
    portions: list[Any] = []
    with contextlib.suppress(OSError, EOFError, StopIteration, pa.ArrowInvalid), pa.OSFile(str(path), "rb") as file:
        reader = pa.ipc.open_stream(file)
        while True:
            portions.append(reader.read_next_batch())
    return pa.Table.from_batches(portions) if portions else None


def main() -> None:
    table, version, fragment, out = sys.argv[1:]
    _limit_memory()
    dataset = lance.dataset(table, version=int(version))
    layout = read_layout(dataset.schema)
    with pa.OSFile(out, "wb") as file, pa.ipc.new_stream(file, dataset.schema) as writer:
        for rows in _read(dataset, int(fragment)):
            damaged = find_damaged_rows(rows, layout)
            good = [row for row in range(len(rows)) if row not in damaged]
            if good:
                for batch in rows.take(good).cast(dataset.schema).to_batches():
                    writer.write_batch(batch)


def _read(dataset: Any, number: int) -> Iterator[Any]:
    """All readable rows of a fragment, in portions."""
    fragment = dataset.get_fragment(number)
    count = fragment.count_rows()
    for start in range(0, count, PORTION):
        wanted = list(range(start, min(start + PORTION, count)))
        for part in (wanted, *([row] for row in wanted)):
            try:
                yield fragment.take(part)
            except BaseException as error:  # also a panic
                if isinstance(error, (KeyboardInterrupt, SystemExit)):
                    raise
                continue
            if len(part) > 1 or len(wanted) == 1:
                break


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


if __name__ == "__main__":
    main()
