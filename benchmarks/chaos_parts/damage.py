"""Random damage to random files of a collection; then: the same answers, or an error of resight's own.

Bits are flipped, blocks zeroed, files cut short, lengthened, emptied or removed, one at a time. The answers must be
those of the whole collection, or an error must say what is wrong.
"""

import logging
import random
import resource
import shutil
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image

from resight.collection import Collection, open_collection
from resight.errors import ResightError

IMAGES = 12
Answers = list[tuple[str, float]]


def damage_files(folder: Path, count: int, seed: int) -> dict[str, object]:
    logging.disable(logging.WARNING)  # it tells of every damage that it gets over
    try:
        return _damage_files(folder, count, seed)
    finally:
        logging.disable(logging.NOTSET)


def _damage_files(folder: Path, count: int, seed: int) -> dict[str, object]:
    photos = make_photos(folder / "photos")
    whole = folder / "whole.resight"
    with_networks = open_collection(whole, "sift_tokens")
    with_networks.add(photos)
    with_networks.delete(["11.png"])
    with_networks.add(photos / "11.png")
    expected = ask(with_networks, photos)
    files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file() and path.stat().st_size)
    files = [path for path in files if path.name != "writer.lock"]
    chance = random.Random(seed)
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    tracebacks: list[str] = []
    copy = folder / "copy.resight"
    base = peak()
    for _ in range(count):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(whole, copy)
        file = chance.choice(files)
        what = chance.choice(list(DAMAGES))
        DAMAGES[what](copy / file, chance)
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


def ask(collection: Collection, photos: Path) -> Answers:
    """Ids and scores of two searches, with the paths and sizes that are stored."""
    answers: Answers = []
    for name in ("3.png", "11.png"):
        answers += [(hit.id, round(float(hit.score), 5)) for hit in collection.search(photos / name, k=IMAGES)]
    answers += [(str(record), float(record.bytes)) for record in collection.records()]
    return answers


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
