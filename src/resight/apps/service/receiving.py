"""Files of a request in, arrivals and refused files out: each is decoded once, by a process of its own.

A file that cannot be decoded is named with the reason and does not stop the others.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence

from fastapi import UploadFile

from resight.apps.service.decoders import DecoderPool
from resight.apps.service.jobs.job import Arrival
from resight.apps.service.upload_ids import clean_name
from resight.errors import ImageError
from resight.types import Attribute, Skipped


async def receive_files(
    files: Sequence[UploadFile], attributes: Sequence[Mapping[str, Attribute]], decoders: DecoderPool
) -> list[Arrival | Skipped]:
    """One a file, in their order; `attributes` are those of each."""
    return [await _receive(file, said, decoders) for file, said in zip(files, attributes, strict=False)]


async def _receive(file: UploadFile, attributes: Mapping[str, Attribute], decoders: DecoderPool) -> Arrival | Skipped:
    name = clean_name(file.filename or "")
    data = await file.read()
    try:
        await decoders.decode(data, name, max_side=0)
    except ImageError as error:
        return Skipped(name, error.problem.removeprefix(f"cannot read {name}: "))
    return Arrival(name, hashlib.sha256(data).hexdigest(), _read_again(file), len(data), attributes)


def _read_again(file: UploadFile) -> Callable[[], bytes]:
    """A way to the bytes, which are not held meanwhile: a request has many files."""

    def read() -> bytes:
        file.file.seek(0)
        return file.file.read()

    return read
