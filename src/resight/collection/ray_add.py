"""Adding images on a Ray cluster: workers on all nodes encode and write rows, this process commits them.

In: the sources and an open collection. Out: the report that adding on one machine gives, and the same rows.

Exactly once: a block of images is one task, which Ray repeats when its node is lost. Rows of new images lie in files
that no version of the collection names; each file is committed once, when its block is reported for the first time, and
what a repeated task has left is removed at the end. So the vectors neither pass this process nor are they copied.
Images that replace stored ones (they have changed) are few: their rows come back and are written as on one machine.

Commits are seconds apart, and what is committed stays. Run again, adding goes on with what is missing, whatever was
lost: a node, which costs the blocks that it had, or this process.
"""

import logging
import os
import pickle
import time
import uuid
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from resight import ray_cluster
from resight.collection import location
from resight.collection.add import AddReport, Progress, Tally
from resight.collection.change_detection import ChangeDetector, KnownImages
from resight.collection.image_list import ImageList
from resight.collection.ray_worker import TOKEN, Block, Failure, Job, Outcome, Worker
from resight.encode.extract import gather
from resight.errors import InputError
from resight.files.remote import is_remote
from resight.store import SharedWriter, Store
from resight.types import ImageRef, Skipped

WAVE = 1 << 16  # images that are handed out at a time: this process keeps no list of millions
SMALLEST_BLOCK, LARGEST_BLOCK = 32, 256  # networks take up to 32 pictures at once, or an even part of that
BLOCKS_A_WORKER = 8  # in a wave: the last ones to finish should not keep the others waiting
COMMIT_SECONDS, COMMIT_IMAGES = 5.0, 4096
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def add(
    lists: Sequence[ImageList],
    folder: Path,
    spaces: tuple[str, ...],
    store: Store,
    engine: str,
    progress: Progress | None = None,
) -> AddReport:
    """Bring the collection in `folder` up to date with the images. The caller holds the writer lock.

    `spaces` and `store` are the collection's; the networks themselves are loaded by the workers alone.
    """
    shared = _check_store(store)
    ray_cluster.connect(engine)
    ray_cluster.check_versions()
    folder = folder if is_remote(folder) else Path(os.path.abspath(folder))  # noqa: PTH100 - links as they are
    with _leave_token(folder) as token:
        job = Job(folder, token, spaces, ray_cluster.list_versions())
        return _Adding(job, store, shared, progress, sum(map(len, lists))).run(lists)


class _Adding:
    def __init__(self, job: Job, store: Store, shared: SharedWriter, progress: Progress | None, total: int) -> None:
        self._job = job
        self._store = store
        self._shared = shared
        store.refresh()
        self._known = KnownImages(store.snapshot())
        self._tally = Tally(self._known, progress, total)
        self._detector = ChangeDetector(self._known, self._tally.count_unchanged, self._wait_for)
        self._wave: dict[str, ImageRef] = {}
        self._waiting: list[Outcome] = []  # for the next commit
        self._committed = time.monotonic()

    def run(self, lists: Sequence[ImageList]) -> AddReport:
        for images in lists:
            for ref in self._detector.detect(images, ids_are_given=images.ids_are_given):
                if isinstance(ref, Skipped):
                    self._tally.count_skipped(ref)
                    continue
                self._wait_for([ref.id])
                self._wave[ref.id] = ref
                if len(self._wave) >= WAVE:
                    self._finish_wave()
        self._finish_wave()
        return self._tally.report()

    def _wait_for(self, names: Sequence[str]) -> None:
        """What an image is called depends on those that are stored, so one of the same name has to be stored first."""
        if any(name in self._wave for name in names):
            self._finish_wave()

    def _finish_wave(self) -> None:
        blocks = cut_blocks(list(self._wave.values()), self._known, count_cpus())
        pending = {block.number: block for block in blocks}
        excluded: dict[str, Failure] = {}  # nodes that cannot write, by their id
        while pending:
            self._encode(pending, excluded)
            if pending and not _are_left(excluded):
                self._commit()
                raise list(excluded.values())[-1].error
        self._commit()
        if self._wave:
            self._tidy()
        self._wave = {}

    def _encode(self, pending: dict[int, Block], excluded: dict[str, Failure]) -> None:
        """Take blocks that are done from `pending`, and note who cannot write in `excluded`."""
        with closing(encode(list(pending.values()), self._job, list(excluded))) as outcomes:
            for outcome in outcomes:
                failure = outcome.failure
                if failure is not None and not failure.is_of_the_disk:
                    raise failure.error
                if failure is not None:
                    excluded[failure.node_id] = failure
                elif pending.pop(outcome.number, None) is not None:  # else it was repeated, and reported before
                    self._take(outcome)

    def _take(self, outcome: Outcome) -> None:
        self._waiting.append(outcome)
        for skipped in outcome.skipped:
            self._tally.count_skipped(skipped)
        images = sum(len(one.stored) for one in self._waiting)
        if images >= COMMIT_IMAGES or time.monotonic() - self._committed >= COMMIT_SECONDS:
            self._commit()

    def _commit(self) -> None:
        fragments = [one.fragment for one in self._waiting if one.fragment is not None]
        if fragments:
            self._shared.commit(fragments)
        for one in self._waiting:
            self._store.write(one.records)
            self._tally.count_stored(one.stored)
        self._waiting = []
        self._committed = time.monotonic()

    def _tidy(self) -> None:
        if self._store.is_scattered:
            self._store.compact()
        else:
            self._shared.sweep()


def cut_blocks(refs: Sequence[ImageRef], known: KnownImages, workers: int) -> list[Block]:
    """Blocks small enough for every worker to get several; their size is a multiple of the smallest."""
    share = len(refs) // (BLOCKS_A_WORKER * workers)
    size = min(max(share - share % SMALLEST_BLOCK, SMALLEST_BLOCK), LARGEST_BLOCK)
    new = [ref for ref in refs if not known.holds(ref.id)]
    changed = [ref for ref in refs if known.holds(ref.id)]
    cut = [(some, part is new) for part in (new, changed) for some in gather(part, size)]
    return [Block(number, tuple(some), is_new) for number, (some, is_new) in enumerate(cut)]


def count_cpus() -> int:
    return max(1, int(ray_cluster.import_ray().cluster_resources().get("CPU", 1)))


def encode(blocks: Sequence[Block], job: Job, excluded: Sequence[str]) -> Generator[Outcome, None, None]:
    """Outcomes as they come, one a block and once a block; workers are not placed on the nodes in `excluded`."""
    with ray_cluster.cluster_errors("encoding on the Ray cluster has stopped"), _quiet_ray_data() as data:
        items = [{"block": pickle.dumps(block)} for block in blocks]
        workers = min(count_cpus(), len(blocks))
        elsewhere = {"label_selector": {"ray.io/node-id": f"!in({','.join(excluded)})"}} if excluded else {}
        outcomes = data.from_items(items, override_num_blocks=len(items)).map_batches(
            Worker,
            fn_constructor_args=(job,),
            batch_size=None,
            batch_format="pyarrow",
            compute=data.ActorPoolStrategy(
                min_size=1, max_size=len(blocks), initial_size=workers, max_tasks_in_flight_per_actor=2
            ),
            num_cpus=1,
            **elsewhere,
        )
        for table in outcomes.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
            for outcome in table["outcome"].to_pylist():
                yield pickle.loads(outcome)


@contextmanager
def _quiet_ray_data() -> Iterator[Any]:
    """`ray.data`, which would otherwise draw its own progress on the terminal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of its own settings, when it sets them
        import ray.data

        context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    yield ray.data


def _are_left(excluded: dict[str, Failure]) -> bool:
    nodes = ray_cluster.import_ray().nodes()
    able = {node["NodeID"] for node in nodes if node["Alive"] and node["Resources"].get("CPU", 0) >= 1}
    return bool(able - set(excluded))


@contextmanager
def _leave_token(folder: Path) -> Iterator[str]:
    """A file that tells workers on other nodes that they see the same folder; in an object store it stays."""
    token = uuid.uuid4().hex
    location.write_file(folder, TOKEN, token.encode())
    try:
        yield token
    finally:
        if not is_remote(folder):
            (folder / TOKEN).unlink(missing_ok=True)


def _check_store(store: Store) -> SharedWriter:
    if not isinstance(store, SharedWriter):
        raise InputError(
            "this collection's store cannot be written to by many nodes",
            expected='a store such as "lance"',
            actual=type(store).__name__,
            fix="leave out --engine",
        )
    return store
