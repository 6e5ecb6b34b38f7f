"""Adding images on a Ray cluster: workers on all nodes encode and write rows, this process commits them.

In: lists of images and an open collection. Out: the report and the rows of adding on one machine.

Exactly once: a block of images is one task, which Ray repeats if its node is lost. Workers write the rows of new images
to files that no version of the collection names; this process commits each file once, when its block is first reported,
and removes the files of repeated tasks at the end. So vectors neither pass through this process nor are they copied.
Images that replace stored ones are few: their rows come back, and are written as on one machine.

Commits are seconds apart, and committed images stay. Run again, adding continues with the missing images, whether a
node was lost, which costs the blocks that it had, or this process.
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
from resight.encode.feature_cache import FeatureCache
from resight.errors import InputError
from resight.files.remote import is_remote
from resight.store import SharedWriter, Store
from resight.types import ImageRef, Skipped

WAVE = 1 << 16  # images handed out at a time: this process holds no list of millions
SMALLEST_BLOCK, LARGEST_BLOCK = 32, 256  # networks take up to 32 pictures at once, or a divisor of that
BLOCKS_PER_WORKER = 8  # in a wave, so that no worker waits long for the last one
COMMIT_SECONDS, COMMIT_IMAGES = 5.0, 4096


def add(
    lists: Sequence[ImageList],
    folder: Path,
    spaces: tuple[str, ...],
    store: Store,
    engine: str,
    progress: Progress | None = None,
    cache: FeatureCache | None = None,
) -> AddReport:
    """Bring the collection in `folder` up to date with the images. The caller holds the writer lock.

    `spaces` and `store` are the collection's; the networks themselves are loaded by the workers alone.
    """
    if cache is not None:
        raise InputError(
            "an engine cannot use the feature cache, which serves one machine",
            expected="a cache, or an engine",
            actual=f"both, with the engine {engine!r}",
            fix="leave out one of them",
        )
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
        return self._tally.report(lists)

    def _wait_for(self, names: Sequence[str]) -> None:
        """The id of an image depends on the stored ones, so an image of the same name must be stored first."""
        if any(name in self._wave for name in names):
            self._finish_wave()

    def _finish_wave(self) -> None:
        blocks = cut_blocks(list(self._wave.values()), self._known, count_cpus())
        pending = {block.number: block for block in blocks}
        excluded: dict[str, Failure] = {}  # nodes that cannot write, by id
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
        """Take finished blocks from `pending`, and add nodes that cannot write to `excluded`."""
        with closing(encode(list(pending.values()), self._job, list(excluded))) as outcomes:
            for outcome in outcomes:
                failure = outcome.failure
                if failure is not None and not failure.is_of_the_disk:
                    raise failure.error
                if failure is not None:
                    excluded[failure.node_id] = failure
                elif pending.pop(outcome.number, None) is not None:  # otherwise a repeated task, reported before
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
    """Blocks small enough for every worker to get several; sizes are multiples of SMALLEST_BLOCK."""
    share = len(refs) // (BLOCKS_PER_WORKER * workers)
    size = min(max(share - share % SMALLEST_BLOCK, SMALLEST_BLOCK), LARGEST_BLOCK)
    new = [ref for ref in refs if not known.holds(ref.id)]
    changed = [ref for ref in refs if known.holds(ref.id)]
    cut = [(some, part is new) for part in (new, changed) for some in gather(part, size)]
    return [Block(number, tuple(some), is_new) for number, (some, is_new) in enumerate(cut)]


def count_cpus() -> int:
    return max(1, int(ray_cluster.import_ray().cluster_resources().get("CPU", 1)))


def encode(blocks: Sequence[Block], job: Job, excluded: Sequence[str]) -> Generator[Outcome, None, None]:
    """Outcomes as they come, one per block; no worker starts on the nodes in `excluded`."""
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
                yield pickle.loads(outcome)  # nosec B301  # from the nodes of one's own cluster, as Ray does


@contextmanager
def _quiet_ray_data() -> Iterator[Any]:
    """`ray.data` without its own progress bars on the terminal."""
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
    """A file by which workers on other nodes recognise the same folder; in an object store it stays."""
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
