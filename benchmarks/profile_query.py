"""Where the CPU time of a query goes, by stage.

    python benchmarks/profile_query.py COLLECTION PHOTOS [--most 60] [--json FILE]

Each query runs alone in one thread. Milliseconds of CPU per query: of its own thread, stage by stage, without what a
stage calls that is a stage itself; and of the whole process, which also counts the threads of BLAS and onnxruntime that
work or spin. The first three queries only warm up.
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isgenerator
from pathlib import Path
from typing import Any

from resight.collection import open_collection
from resight.collection import view as view_module
from resight.collection.view import View
from resight.data import image_files
from resight.encode import backbones, codebook
from resight.encode.query import Encoders
from resight.search import pipeline, verification
from resight.search.matchers.ratio import Ratio
from resight.search.request import SearchRequest
from resight.store._snapshot import Snapshot
from resight.types import ImageRef

WARM = 3


class Stages:
    """CPU time of the thread per stage, without the stages that it calls."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._open: list[float] = []  # of each open stage: seconds of the stages within

    def watch(self, owner: Any, name: str, stage: str) -> None:
        function = getattr(owner, name)

        @wraps(function)
        def measured(*arguments: Any, **options: Any) -> Any:
            with self.stage(stage):
                found = function(*arguments, **options)
            return self._follow(found, stage) if isgenerator(found) else found

        setattr(owner, name, measured)

    @contextmanager
    def stage(self, stage: str) -> Iterator[None]:
        self._open.append(0.0)
        start = time.thread_time()
        try:
            yield
        finally:
            spent = time.thread_time() - start
            self.seconds[stage] += spent - self._open.pop()
            if self._open:
                self._open[-1] += spent

    def _follow(self, items: Iterator[Any], stage: str) -> Iterator[Any]:
        end = object()
        while True:
            with self.stage(stage):
                item = next(items, end)
            if item is end:
                return
            yield item


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", type=Path)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--most", type=int, default=60)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    view = open_collection(options.collection, must_exist=True).view()
    photos = sorted(path for path in options.photos.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
    photos = photos[: options.most + WARM]
    for photo in photos[:WARM]:
        ask(view, photo)
    stages = Stages()
    watch_all(stages, view)
    process, thread = time.process_time(), time.thread_time()
    for photo in photos[WARM:]:
        ask(view, photo)
    count = len(photos) - WARM
    process, thread = time.process_time() - process, time.thread_time() - thread
    found = {stage: 1000 * seconds / count for stage, seconds in stages.seconds.items()}
    found["the rest"] = 1000 * thread / count - sum(found.values())
    for stage, milliseconds in sorted(found.items(), key=lambda item: -item[1]):
        print(f"{stage:34} {milliseconds:7.2f} ms")
    print(f"{'thread':34} {1000 * thread / count:7.2f} ms   process {1000 * process / count:.2f} ms, {count} queries")
    if options.json:
        totals = {"thread": 1000 * thread / count, "process": 1000 * process / count}
        options.json.write_text(json.dumps({**found, **totals}))


def ask(view: View, photo: Path) -> None:
    view.ask(SearchRequest(ImageRef(photo.name, photo), k=10))


def watch_all(stages: Stages, view: View) -> None:
    for encoder in {branch.encoder.name: branch.encoder for branch in view.recipe.branches}.values():
        stages.watch(type(backbones.build(encoder.name, **encoder.settings)), "extract", f"encoder {encoder.name}")
    for reranker in view.pipeline.rerankers:
        stages.watch(type(reranker), "rerank", f"reranker {type(reranker).__name__.lower()}")
    for owner, name, stage in (
        (view_module, "search", "search: the rest"),
        (image_files, "read", "read and decode"),
        (Encoders, "encode_queries", "encoding: the rest"),
        (codebook.Codebook, "find_nearest", "visual words"),
        (pipeline, "shortlist", "shortlist"),
        (pipeline, "locate", "boxes"),
        (Snapshot, "_fetch", "rows from the store"),
        (Ratio, "match", "pairs of key points"),
        (verification, "choose", "geometric models"),
    ):
        if hasattr(owner, name):
            stages.watch(owner, name, stage)


if __name__ == "__main__":
    main()
