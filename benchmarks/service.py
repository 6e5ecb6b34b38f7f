"""The service under load, through real HTTP: each part prints its figures and leaves with 1 when a bar is missed.

    python benchmarks/service.py overhead  COLLECTION QUERIES [--rounds 40]
    python benchmarks/service.py load      COLLECTION QUERIES --added FOLDER [--minutes 5] [--clients 20]
    python benchmarks/service.py overload  COLLECTION QUERIES [--seconds 30] [--times 4]
    python benchmarks/service.py malformed COLLECTION [--count 10000]      malformed images
    python benchmarks/service.py requests  COLLECTION [--count 10000]      malformed requests

COLLECTION is copied first and stays as it is; QUERIES and --added are folders of photos. `--serve "OPTIONS"` goes to
`resight serve`. Clients run in this process, on the same machine: what they take is missing to the server.
Ctrl-C or SIGTERM ends malformed images and requests early, with the figures so far.
"""

import argparse
import contextlib
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from service_parts.load import measure_load, measure_overload
from service_parts.odd_requests import send_odd_requests
from service_parts.overhead import measure_overhead
from service_parts.server import Server
from service_parts.uploads import send_malformed


def main() -> None:
    given = parse()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with serve(given.collection, shlex.split(given.serve), given.log) as server:
        if given.part == "overhead":
            passed = measure_overhead(server, given.queries, given.rounds)
        elif given.part == "load":
            passed = measure_load(server, given.queries, given.added, given.clients, given.minutes * 60)
        elif given.part == "overload":
            passed = measure_overload(server, given.queries, given.seconds, given.times)
        elif given.part == "requests":
            passed = send_odd_requests(server, given.count, given.seed)
        else:
            passed = send_malformed(server, given.count, given.seed)
    sys.exit(0 if passed else 1)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    made = {name: parts.add_parser(name) for name in ("overhead", "load", "overload", "malformed", "requests")}
    for name, part in made.items():
        part.add_argument("collection", type=Path)
        if name not in ("malformed", "requests"):
            part.add_argument("queries", type=Path)
        part.add_argument("--serve", default="", metavar="OPTIONS")
        part.add_argument("--log", type=Path, help="where the server's own lines go")
    made["overhead"].add_argument("--rounds", type=int, default=40)
    made["load"].add_argument("--added", type=Path, required=True)
    made["load"].add_argument("--minutes", type=float, default=5)
    made["load"].add_argument("--clients", type=int, default=20)
    made["overload"].add_argument("--seconds", type=float, default=30)
    made["overload"].add_argument("--times", type=float, default=4, help="of the measured capacity")
    for name in ("malformed", "requests"):
        made[name].add_argument("--count", type=int, default=10_000)
        made[name].add_argument("--seed", type=int, default=0)
    return parser.parse_args()


@contextlib.contextmanager
def serve(collection: Path, options: list[str], log: Path | None) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(shutil.copytree(collection, Path(scratch) / collection.name))
        with Server(copy, *options, log=log) as server:
            yield server


if __name__ == "__main__":
    main()
