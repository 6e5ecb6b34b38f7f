"""A real server process: `with serve(collection) as server:` gives its address; it is stopped at the end."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

PATIENCE = 120.0  # seconds; a loaded machine takes its time to start several processes


@dataclass(frozen=True)
class Server:
    address: str  # without a slash at its end
    process: subprocess.Popen[str]


@contextmanager
def serve(*collections: Path, options: tuple[str, ...] = ()) -> Iterator[Server]:
    """`resight serve` on any free port, once it answers."""
    words = ["serve", *map(str, collections), "--port", "0", "--log", "none", *options]
    process = subprocess.Popen([sys.executable, "-m", "resight", *words], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        said = process.stdout.readline()
        found = re.search(r"http://\S+(?=/)", said)
        assert found, f"no address in {said!r}"
        httpx.get(f"{found[0]}/api/health", timeout=PATIENCE).raise_for_status()
        yield Server(found[0], process)
    finally:
        process.terminate()
        process.wait(PATIENCE)
        process.stdout.close()
