"""Random damage to random files of a collection; then: the same answers, or an error of resight's own.

Bits are flipped, blocks zeroed, files cut short, lengthened, emptied or removed, one at a time. The answers must be
those of the whole collection, or an error must say what is wrong.

`damage_large` treats the collection as a large one, of which a search reads only the ends of the store's files and the
rows that it needs. `repair_damage` runs `verify --deep` and `repair` after each damage: the fault must be named, and
the repaired collection must open without a fault, with the images that it still has as they were.
"""

import logging
import random
import resource
import shutil
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image

from resight.collection import Collection, open_collection
from resight.collection.upkeep.integrity import verify
from resight.collection.upkeep.repair import repair
from resight.errors import ResightError
from resight.files import checksum
from resight.files.fingerprint import fingerprint
from resight.store import _files

IMAGES = 12
RECIPE = "sift_tokens"
Answers = list[tuple[str, float]]
Records = dict[str, list[str]]  # id → what is stored of it


def damage_files(folder: Path, count: int, seed: int) -> dict[str, object]:
    with _quietly():
        return _damage_files(folder, count, seed)


def damage_large(folder: Path, count: int, seed: int) -> dict[str, object]:
    for module in (checksum, _files):
        module.BLOCK = 4096
    _files.CHECKED_BYTES = 0
    with _quietly():
        return _damage_files(folder, count, seed)


def _damage_files(folder: Path, count: int, seed: int) -> dict[str, object]:
    photos = make_photos(folder / "photos")
    whole = folder / "whole.resight"
    make_collection(whole, photos)
    with_networks = open_collection(whole, must_exist=True)
    expected = ask(with_networks, photos)
    files = list_files(whole)
    chance = random.Random(seed)
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    tracebacks: list[str] = []
    base = peak()
    for _ in range(count):
        copy, file, what = damage_copy(whole, folder / "copy.resight", files, chance)
        try:
            found = ask(
                open_collection(copy, must_exist=True, networks=with_networks._encoding.encoder.networks), photos
            )
        except ResightError as error:
            outcomes[type(error).__name__] += 1
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            tracebacks.append(f"{what} {file}: {traceback.format_exception_only(error)[-1].strip()[:300]}")
        else:
            outcomes["same" if found == expected else "wrong"] += 1
            if found != expected:
                wrong.append(f"{what} {file}")
    return {
        "count": count,
        "files": len(files),
        "outcomes": dict(outcomes),
        "wrong": len(wrong),
        "wrong_at": wrong[:10],
        "tracebacks": len(tracebacks),
        "first": tracebacks[:10],
        "peak_mib": round(peak()),
        "more_than_whole_mib": round(peak() - base),
    }


def repair_damage(folder: Path, count: int, seed: int) -> dict[str, object]:
    with _quietly():
        photos, whole = make_photos(folder / "photos"), folder / "whole.resight"
        expected, chosen = make_collection(whole, photos), list_files(whole)
        chance, outcomes, bad = random.Random(seed), Counter[str](), list[str]()
        for _ in range(count):
            copy, file, what = damage_copy(whole, folder / "copy.resight", chosen, chance)
            try:
                outcomes[_repair(copy, expected)] += 1
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                bad.append(f"{what} {file}: {traceback.format_exception_only(error)[-1].strip()[:300]}")
    return {"count": count, "outcomes": dict(outcomes), "bad": len(bad), "why": bad[:10]}


def _repair(copy: Path, expected: Records) -> str:
    found = verify(copy, deep=True)
    try:
        report = repair(copy)
    except ResightError as error:
        if not found.faults:
            raise AssertionError(f"verify found nothing, and repair says {error}") from error
        return type(error).__name__
    if report.left.faults:
        raise AssertionError(f"left: {report.left.faults[0]}")
    records = read_records(open_collection(copy, must_exist=True))
    wrong = {name: value for name, value in records.items() if expected.get(name) != value}
    missing = expected.keys() - records.keys()
    if wrong or (missing and not found.faults):
        raise AssertionError(f"{len(wrong)} differ; {len(missing)} are missing; verify named {len(found.faults)}")
    if missing - set(report.lost):
        return "images lost, not all of them named"
    return "images lost and named" if missing else "all images there" if found.faults else "nothing was wrong"


def ask(collection: Collection, photos: Path) -> Answers:
    """Ids and scores of two searches, with the paths and sizes that are stored."""
    answers: Answers = []
    for name in ("3.png", "11.png"):
        answers += [(hit.id, round(float(hit.score), 5)) for hit in collection.search(photos / name, k=IMAGES)]
    answers += [(str(record), float(record.bytes)) for record in collection.records()]
    return answers


def make_collection(folder: Path, photos: Path) -> Records:
    collection = open_collection(folder, RECIPE)
    collection.add(photos)
    collection.delete(["11.png"])
    collection.add(photos / "11.png")
    collection.search(photos / "3.png")
    return read_records(collection)


def read_records(collection: Collection) -> Records:
    """Everything that is stored, image by image."""
    found: Records = {record.id: [str(record)] for record in collection.records()}
    for branch in range(len(collection.recipe.branches)):
        for name in found:
            (rows,) = collection.descriptors(branch, [name])
            found[name] += [
                fingerprint(array.tobytes()) for array in (rows.vectors, rows.boxes, rows.weights) if array is not None
            ]
    return found


def list_files(folder: Path) -> list[Path]:
    files = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    return [path for path in files if path.name != "writer.lock"]


def damage_copy(whole: Path, copy: Path, files: list[Path], chance: random.Random) -> tuple[Path, Path, str]:
    """A copy with one damaged file; which one, and how."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(whole, copy)
    file, what = chance.choice(files), chance.choice(list(DAMAGES))
    DAMAGES[what](copy / file, chance)
    return copy, file, what


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the warnings that tell of every damage."""
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def make_photos(folder: Path) -> Path:
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(IMAGES):
        small = Image.fromarray(rng.integers(0, 255, (18, 24, 3), dtype=np.uint8))
        small.resize((240, 180), Image.Resampling.BICUBIC).save(folder / f"{number}.png")
    return folder


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def flip_bit(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def change_bytes(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    start = chance.randrange(len(data))
    data[start : start + 8] = chance.randbytes(len(data[start : start + 8]))
    path.write_bytes(data)


def zero_block(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    start = chance.randrange(len(data))
    data[start : start + 512] = bytes(len(data[start : start + 512]))
    path.write_bytes(data)


def cut_short(path: Path, chance: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)])


def lengthen(path: Path, chance: random.Random) -> None:
    path.write_bytes(path.read_bytes() + chance.randbytes(chance.randrange(1, 64)))


def empty(path: Path, _: random.Random) -> None:
    path.write_bytes(b"")


def remove(path: Path, _: random.Random) -> None:
    path.unlink()


DAMAGES = {
    "bit": flip_bit,
    "bytes": change_bytes,
    "zeros": zero_block,
    "cut": cut_short,
    "longer": lengthen,
    "empty": empty,
    "removed": remove,
}
