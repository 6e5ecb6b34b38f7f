import io
import os
import pickle
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

from resight.data.unpickle import load, take_names, take_numbers
from resight.errors import ManifestError

PLAIN = {
    "text": "é",
    "numbers": [1, -2, 2**70, 0.5, True, None],
    "nested": ({"a": (1,)}, {1, 2}, frozenset("x")),
    "bytes": b"\x00\xff",
}


def write(path: Path, value: object, protocol: int) -> Path:
    path.write_bytes(pickle.dumps(value, protocol=protocol))
    return path


class Command:
    """Runs a command in whoever unpickles it."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"echo x > {self._marker}",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_of_every_protocol_is_read(tmp_path: Path, protocol: int):
    assert load(write(tmp_path / "plain.pkl", PLAIN, protocol)) == PLAIN


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dtype", ["float32", ">i8", "U4", "O"])
def test_arrays_of_every_protocol_are_read_with_shape_and_dtype(tmp_path: Path, protocol: int, dtype: str):
    array = np.array([[1, 2, 3], [4, 5, 6]]).astype(dtype)
    for given in (array, np.asfortranarray(array)):
        path = write(tmp_path / "array.pkl", {"a": given}, protocol)
        read = load(path)["a"]
        assert read.dtype == pickle.loads(path.read_bytes())["a"].dtype  # of this machine's byte order up to protocol 4
        np.testing.assert_array_equal(read, given)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("scalar", [np.int64(-7), np.float32(0.5), np.bool_(True)])
def test_numpy_scalars_are_read(tmp_path: Path, protocol: int, scalar: np.generic):
    read = load(write(tmp_path / "scalar.pkl", scalar, protocol))
    assert (read, read.dtype) == (scalar, scalar.dtype)


def test_the_names_that_numpy_1_wrote_are_read_too(tmp_path: Path):
    data = pickle.dumps(np.arange(3), protocol=2)
    old = data.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    assert b"numpy.core.multiarray" in old
    (tmp_path / "old.pkl").write_bytes(old)
    assert load(tmp_path / "old.pkl").tolist() == [0, 1, 2]


def test_a_command_in_a_pickle_is_refused_by_its_name_and_does_not_run(tmp_path: Path):
    marker = tmp_path / "ran"
    path = write(tmp_path / "evil.pkl", {"gnd": [Command(marker)]}, 2)
    with pytest.raises(ManifestError, match=r"it names posix\.system|it names nt\.system"):
        load(path)
    assert not marker.exists()
    pickle.loads(path.read_bytes())  # the same file does run elsewhere, or this test would prove nothing
    assert marker.exists()


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("builtins.eval", b"cbuiltins\neval\n(S'1'\ntR."),
        ("builtins.getattr", b"cbuiltins\ngetattr\n."),
        ("numpy.load", b"cnumpy\nload\n(S'x'\ntR."),
        ("numpy.core.multiarray.fromfile", b"cnumpy.core.multiarray\nfromfile\n."),
        ("resight.data.unpickle.load", b"cresight.data.unpickle\nload\n."),
        ("os.system", b"(S'true'\nios\nsystem\n."),
    ],
)
def test_any_other_name_is_refused(tmp_path: Path, name: str, program: bytes):
    (tmp_path / "evil.pkl").write_bytes(program)
    with pytest.raises(ManifestError, match=f"it names {name}") as caught:
        load(tmp_path / "evil.pkl")
    assert caught.value.fix


def test_a_class_of_the_library_is_refused_too(tmp_path: Path):
    with pytest.raises(ManifestError, match=r"collections\.OrderedDict"):
        load(write(tmp_path / "ordered.pkl", OrderedDict(a=1), 4))


def test_what_a_pickle_sets_on_a_maker_stays_in_that_pickle(tmp_path: Path):
    """BUILD sets attributes of whatever is on the stack."""
    (tmp_path / "sets.pkl").write_bytes(b"cnumpy\ndtype\n(dS'mark'\nI1\nsb.")
    load(tmp_path / "sets.pkl")
    (tmp_path / "again.pkl").write_bytes(b"cnumpy\ndtype\n.")
    assert not hasattr(load(tmp_path / "again.pkl"), "mark")


@pytest.mark.parametrize("data", [b"", b"not a pickle", pickle.dumps(PLAIN)[:-9], b"cnumpy\ndtype\n(I1\ntR."])
def test_a_damaged_pickle_is_refused_with_its_path(tmp_path: Path, data: bytes):
    (tmp_path / "bad.pkl").write_bytes(data)
    with pytest.raises(ManifestError, match=r"bad\.pkl"):
        load(tmp_path / "bad.pkl")


def test_an_array_that_claims_more_than_it_has_is_refused(tmp_path: Path):
    buffer = io.BytesIO()
    pickle.Pickler(buffer, protocol=2).dump(np.zeros(3, np.uint8))
    assert buffer.getvalue().count(b"K\x03\x85") == 1  # its shape, (3,)
    (tmp_path / "huge.pkl").write_bytes(buffer.getvalue().replace(b"K\x03\x85", b"J\xff\xff\xff\x7f\x85"))
    with pytest.raises(ManifestError, match="is damaged"):
        load(tmp_path / "huge.pkl")


def test_a_missing_file_is_refused(tmp_path: Path):
    with pytest.raises(ManifestError, match="no such file"):
        load(tmp_path / "none.pkl")


def test_lists_are_taken_by_key_from_lists_and_arrays():
    path = Path("x.pkl")
    assert take_names({"a": ("x", "y")}, "a", path) == ["x", "y"]
    assert take_numbers({"a": [0, np.int32(4)]}, "a", path, below=5) == [0, 4]
    assert take_numbers({"a": np.array([3, 1])}, "a", path, below=5) == [3, 1]


@pytest.mark.parametrize("values", [[5], [-1], [1.0], ["1"], [True], 3, None])
def test_numbers_out_of_range_and_of_another_type_are_refused(values: object):
    with pytest.raises(ManifestError, match=r"x\.pkl has another form: 'a'"):
        take_numbers({"a": values}, "a", Path("x.pkl"), below=5)


@pytest.mark.parametrize("table", [{"b": ["x"]}, ["a"], None, {"a": [1]}, {"a": "x"}])
def test_names_that_are_not_there_are_refused(table: object):
    with pytest.raises(ManifestError, match="'a'"):
        take_names(table, "a", Path("x.pkl"))
