"""The forms of a collection's crater crops: records in, one vector each out; a form is computed once.

The vectors lie in one file below the user's cache directory, by the content of the crop and the circle in it. A crop
whose file is gone or has changed is skipped, with the reason.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.audit.likeness.crater_form import FormEncoder
from resight.boxes import crop
from resight.data import image_files
from resight.data.maps.crater_view import CraterView
from resight.errors import BoxError, ImageError
from resight.files import cache_folder
from resight.files.atomic import write_atomic
from resight.files.fingerprint import fingerprint
from resight.store import ImageRecord
from resight.types import FloatArray, Picture, Skipped

BATCH = 256  # crops between two looks at the progress
SAVED = 4096  # new forms between two writings of the file
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Forms:
    ids: tuple[str, ...]
    vectors: FloatArray  # [n, D]
    skipped: tuple[Skipped, ...] = ()


def read_forms(
    collection: Path,
    crops: Sequence[tuple[ImageRecord, CraterView]],
    encoder: FormEncoder,
    progress: Progress | None = None,
) -> Forms:
    """The forms of crops whose outline is known, in their order."""
    file = cache_folder() / "forms" / f"{fingerprint(f'{encoder.fingerprint} {collection.resolve()}', 32)}.npz"
    known = _load(file)
    skipped: list[Skipped] = []
    fresh = 0
    missing = [(record, view) for record, view in crops if _key(record, view) not in known]
    try:
        with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="forms") as pool:
            for begin in range(0, len(missing), BATCH):
                batch = missing[begin : begin + BATCH]
                for (record, view), found in zip(
                    batch, pool.map(lambda one: _describe(one[0], one[1], encoder), batch), strict=True
                ):
                    if isinstance(found, Skipped):
                        skipped.append(found)
                    else:
                        known[_key(record, view)] = found
                        fresh += 1
                if progress:
                    progress(begin + len(batch), len(missing))
                if fresh >= SAVED:
                    _save(file, known)
                    fresh = 0
    finally:
        if fresh:
            _save(file, known)
    rows = [(record.id, known[_key(record, view)]) for record, view in crops if _key(record, view) in known]
    vectors = np.array([row for _, row in rows], np.float32) if rows else np.zeros((0, 1), np.float32)
    return Forms(tuple(name for name, _ in rows), vectors, tuple(skipped))


def read_crop(record: ImageRecord) -> Picture:
    """The stored image, or the part of its file that it is; an ImageError if that has changed."""
    picture = image_files.read(record.ref)
    if picture.sha256 != record.sha256:
        raise ImageError(f"cannot compare {record.id}: its file has changed since it was indexed")
    return picture if record.ref.box is None else crop(picture, record.ref.box)


def _describe(record: ImageRecord, view: CraterView, encoder: FormEncoder) -> FloatArray | Skipped:
    try:
        picture = read_crop(record)
    except (ImageError, BoxError) as error:
        return Skipped(str(record.path), image_files.reason(error, record.path))
    outline = view.outline((picture.pixels.shape[1], picture.pixels.shape[0]))
    assert outline is not None
    return encoder.describe(picture, outline)


def _key(record: ImageRecord, view: CraterView) -> str:
    return f"{record.sha256} {record.ref.box or ''} {view.view:g}"


def _load(file: Path) -> dict[str, FloatArray]:
    """An unreadable file is computed again."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return dict(zip(arrays["keys"].tolist(), arrays["vectors"].astype(np.float32), strict=True))
    except (OSError, ValueError, KeyError):
        return {}


def _save(file: Path, forms: Mapping[str, FloatArray]) -> None:
    with write_atomic(file) as temporary, temporary.open("wb") as opened:
        np.savez(opened, keys=np.array(list(forms)), vectors=np.array(list(forms.values()), np.float16))
