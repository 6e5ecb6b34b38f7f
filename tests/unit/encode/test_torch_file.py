"""Torch files are put together here byte by byte, so that torch is not needed."""

import io
import pickle
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from resight.encode import torch_file
from resight.errors import InputError

SIX = np.arange(6, dtype=np.float32)
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"


def plain(value: object) -> bytes:
    """The opcodes of a value, to be put into a larger pickle."""
    return pickle.dumps(value, 2)[2:-1]


def name_storage(kind: str = "FloatStorage", key: str = "0", length: int = 6, view: bytes = b"") -> bytes:
    return (
        b"("
        + plain("storage")
        + f"ctorch\n{kind}\n".encode()
        + plain(key)
        + plain("cpu")
        + plain(length)
        + view
        + b"tQ"
    )


def rebuild(offset: int, shape: tuple[int, ...], strides: tuple[int, ...], storage: bytes | None = None) -> bytes:
    parts = (storage or name_storage()) + plain(offset) + plain(shape) + plain(strides) + plain(False)
    return REBUILD + b"(" + parts + b"ccollections\nOrderedDict\n)RtR"


def table(**tensors: bytes) -> bytes:
    """A pickled ordered dictionary with metadata, as a module's state dict has it."""
    items = b"".join(plain(name) + tensor for name, tensor in tensors.items())
    return b"\x80\x02ccollections\nOrderedDict\n)R(" + items + b"u}" + plain("_metadata") + b"}sb."


def write_zip(path: Path, program: bytes, order: bytes = b"little", kind: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", kind) as archive:
        archive.writestr("net/data.pkl", program)
        archive.writestr("net/byteorder", order)
        archive.writestr("net/data/0", SIX.tobytes())
    return path


def write_row(path: Path, program: bytes, magic: int = torch_file.MAGIC, little: bool = True, length: int = 6) -> Path:
    machine = {"protocol_version": 1001, "little_endian": little, "type_sizes": {"int": 4}}
    head = b"".join(pickle.dumps(part, 2) for part in (magic, 1001, machine))
    numbers = length.to_bytes(8, "little") + SIX.tobytes()
    path.write_bytes(head + program + pickle.dumps(["0"], 2) + numbers)
    return path


@pytest.mark.parametrize("write", [write_zip, write_row])
def test_tensors_come_out_in_both_formats(write, tmp_path: Path):
    program = table(
        whole=rebuild(0, (2, 3), (3, 1)),
        turned=rebuild(0, (3, 2), (1, 3)),
        part=rebuild(4, (2,), (1,)),
        single=rebuild(5, (), ()),
        empty=rebuild(0, (0, 3), (3, 1)),
    )
    arrays = torch_file.load(write(tmp_path / "a.pth", program))
    assert arrays["whole"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert arrays["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert arrays["part"].tolist() == [4, 5]
    assert arrays["single"].shape == () and arrays["single"] == 5
    assert arrays["empty"].shape == (0, 3)
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.float32)}
    assert list(arrays) == ["whole", "turned", "part", "single", "empty"]


def test_arrays_are_copies_that_may_be_changed(tmp_path: Path):
    arrays = torch_file.load(write_zip(tmp_path / "a.pth", table(a=rebuild(0, (6,), (1,)), b=rebuild(0, (6,), (1,)))))
    arrays["a"][0] = 9
    assert arrays["b"][0] == 0


class Harm:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self):
        return (Path.touch, (self._path,))


@pytest.mark.parametrize("write", [write_zip, write_row])
def test_code_in_a_file_is_refused_and_not_run(write, tmp_path: Path):
    harmed = tmp_path / "harmed"
    path = write(tmp_path / "a.pth", pickle.dumps({"a": Harm(harmed)}, 2))
    with pytest.raises(InputError, match="it names"):
        torch_file.load(path)
    assert not harmed.exists()


@pytest.mark.parametrize(
    "name", ["os system", "builtins eval", "builtins getattr", "torch load", "collections deque", "numpy ndarray"]
)
def test_every_other_name_is_refused(name: str, tmp_path: Path):
    program = b"\x80\x02c" + name.replace(" ", "\n").encode() + b"\n."
    with pytest.raises(InputError, match=name.replace(" ", r"\.")):
        torch_file.load(write_zip(tmp_path / "a.pth", program))


@pytest.mark.parametrize(
    "tensor",
    [
        rebuild(0, (7,), (1,)),
        rebuild(3, (2, 2), (3, 1)),
        rebuild(-1, (2,), (1,)),
        rebuild(5, (2,), (-1,)),
        rebuild(0, (1_000_000, 1_000_000), (0, 0)),
        rebuild(0, (2, 3), (3,)),
        rebuild(0, (6,), (1,), name_storage(length=60)),
        rebuild(0, (3,), (1,), name_storage("DoubleStorage")),
        rebuild(0, (6,), (1,), name_storage(key="7")),
        rebuild(0, (6,), (1,), name_storage(view=plain(("7", 0, 3)))),
        rebuild(0, (6,), (1,), plain("not a storage")),
        rebuild(0, (6,), (1,), b"(" + plain("module") + plain("a") * 4 + b"tQ"),
        plain(3),
    ],
)
def test_a_tensor_that_does_not_fit_its_numbers_is_refused(tensor: bytes, tmp_path: Path):
    with pytest.raises(InputError, match="cannot read weights"):
        torch_file.load(write_zip(tmp_path / "a.pth", table(a=tensor)))


def test_a_file_that_asks_for_a_huge_memo_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="memory"):
        torch_file.load(write_zip(tmp_path / "a.pth", b"\x80\x02}r\xff\xff\xff\x7f."))


@pytest.mark.parametrize("write", [write_zip, write_row])
def test_a_file_cut_short_anywhere_is_refused(write, tmp_path: Path):
    data = write(tmp_path / "a.pth", table(a=rebuild(0, (6,), (1,)))).read_bytes()
    path = tmp_path / "cut.pth"
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        with pytest.raises(InputError):
            torch_file.load(path)


def test_random_bytes_are_refused(tmp_path: Path):
    path = tmp_path / "a.pth"
    for seed in range(50):
        path.write_bytes(np.random.default_rng(seed).bytes(200))
        with pytest.raises(InputError):
            torch_file.load(path)


def test_other_byte_orders_magic_numbers_lengths_and_compression_are_refused(tmp_path: Path):
    program, path = table(a=rebuild(0, (6,), (1,))), tmp_path / "a.pth"
    for write in (
        lambda: write_zip(path, program, order=b"big"),
        lambda: write_zip(path, program, kind=zipfile.ZIP_DEFLATED),
        lambda: write_row(path, program, magic=5),
        lambda: write_row(path, program, little=False),
        lambda: write_row(path, program, length=5),
        lambda: write_zip(path, pickle.dumps([1, 2], 2)),
    ):
        write()
        with pytest.raises(InputError):
            torch_file.load(path)


def test_a_missing_file_and_a_missing_entry_are_refused(tmp_path: Path):
    with pytest.raises(InputError, match=r"none\.pth"):
        torch_file.load(tmp_path / "none.pth")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("net/other", b"")
    (tmp_path / "a.pth").write_bytes(stream.getvalue())
    with pytest.raises(InputError, match=r"data\.pkl"):
        torch_file.load(tmp_path / "a.pth")


def record(name: str, state: bytes) -> bytes:
    """An object of a script's own class with a state."""
    return b"c__torch__." + name.encode() + b"\n)\x81" + state + b"b"


def state(**parts: bytes) -> bytes:
    return b"}(" + b"".join(plain(name) + part for name, part in parts.items()) + b"u"


def write_script(path: Path, program: bytes) -> Path:
    write_zip(path, b"\x80\x02" + program + b".")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("net/code/__torch__.py", "raise SystemExit")
    return path


def test_tensors_of_a_script_have_the_names_of_its_modules(tmp_path: Path):
    numbers = b"ctorch.jit._pickle\nbuild_intlist\n(" + plain([1, 2]) + b"tR"
    inner = record("nn\nLinear", state(weight=rebuild(0, (2, 3), (3, 1)), bias=rebuild(4, (2,), (1,))))
    path = write_script(tmp_path / "a.pt", record("net\nNet", state(training=plain(False), sizes=numbers, fc=inner)))
    assert torch_file.is_script(path) and not torch_file.is_script(write_zip(tmp_path / "b.pt", table()))
    arrays = torch_file.load_script(path)
    assert {name: array.tolist() for name, array in arrays.items()} == {
        "fc.weight": [[0, 1, 2], [3, 4, 5]],
        "fc.bias": [4, 5],
    }


def test_a_script_may_use_its_own_names_alone(tmp_path: Path):
    harmed = tmp_path / "harmed"
    harm = pickle.dumps(Harm(harmed), 2)[2:-1]
    path = write_script(tmp_path / "a.pt", record("net\nNet", state(a=harm, w=rebuild(0, (6,), (1,)))))
    with pytest.raises(InputError, match="it names"):
        torch_file.load_script(path)
    assert not harmed.exists()


def test_modules_that_contain_themselves_are_refused(tmp_path: Path):
    # The record is put into the memo before its state, which refers to it.
    program = b"c__torch__.net\nNet\n)\x81q\x01}(" + plain("self") + b"h\x01ub"
    with pytest.raises(InputError, match="contain one another"):
        torch_file.load_script(write_script(tmp_path / "a.pt", program))


def test_modules_that_contain_themselves_twice_take_no_memory(tmp_path: Path):
    program = b"c__torch__.net\nNet\n)\x81q\x01}(" + plain("a" * 50) + b"h\x01" + plain("b" * 50) + b"h\x01ub"
    path = write_script(tmp_path / "a.pt", program)
    tracemalloc.start()
    with pytest.raises(InputError, match="contain one another"):
        torch_file.load_script(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20_000_000


def test_a_storage_that_many_tensors_share_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write_zip(tmp_path / "a.pth", table(**{f"t{n}": rebuild(0, (6,), (1,)) for n in range(20)}))
    read: list[str] = []
    original = zipfile.ZipFile.read
    monkeypatch.setattr(
        zipfile.ZipFile, "read", lambda self, name, *rest: read.append(str(name)) or original(self, name, *rest)
    )
    assert len(torch_file.load(path)) == 20
    assert sum("data/0" in name for name in read) == 1
