"""Whatever holds an image becomes the same Picture, and whatever does not is refused with a reason."""

import io
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from support.download_server import Served, serve_files

from resight.data import http_download, image_inputs, sandbox
from resight.data.image_inputs import is_batch, load_image
from resight.errors import ImageError, InputError, ResightError
from resight.types import ImageRef

PIXELS = np.random.default_rng(0).integers(0, 256, (12, 20, 3), np.uint8)


def encode(pixels: np.ndarray = PIXELS, **saved: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", **saved)
    return file.getvalue()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "a.png").write_bytes(encode())
    return tmp_path / "a.png"


@pytest.mark.parametrize(
    "hold",
    [
        lambda path: path,
        str,
        lambda path: ImageRef("a.png", path),
        lambda path: SimpleNamespace(id="a.png", path=path),  # as a Hit
        lambda path: path.read_bytes(),
        lambda path: bytearray(path.read_bytes()),
        lambda path: memoryview(path.read_bytes()),
        lambda path: io.BytesIO(path.read_bytes()),
        Image.open,
        lambda _: Image.fromarray(PIXELS),
        lambda _: PIXELS,
        lambda _: PIXELS.astype(np.float64) / 255,
        lambda _: (PIXELS / 255).astype(np.float16),
        lambda _: PIXELS.astype(np.uint16) * 257,
        lambda _: np.dstack([PIXELS, np.full(PIXELS.shape[:2], 255, np.uint8)]),
        lambda path: load_image(path),
    ],
)
def test_every_form_gives_the_same_picture(path: Path, hold: Any) -> None:
    picture = load_image(hold(path))
    assert np.array_equal(picture.pixels, PIXELS)
    assert picture.size == (20, 12)
    assert picture.ref.id


def test_a_tensor_of_torch_may_have_its_channels_first_or_last() -> None:
    torch = pytest.importorskip("torch")
    last = torch.from_numpy(PIXELS.copy())
    for tensor in (
        last,
        last.permute(2, 0, 1),
        last.permute(2, 0, 1).float() / 255,
        last.permute(2, 0, 1).bfloat16() / 255,
    ):
        pixels = load_image(tensor).pixels.astype(int)
        assert np.abs(pixels - PIXELS).max() <= (1 if tensor.dtype == torch.bfloat16 else 0)
    assert load_image((last.float() / 255).requires_grad_()).size == (20, 12)


def test_torch_is_not_imported() -> None:
    code = "import numpy, sys, resight; resight.load_image(numpy.zeros((8, 8))); print('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


def test_one_channel_is_grey_and_transparency_lies_on_white() -> None:
    grey = PIXELS[:, :, 0]
    for values in (grey, grey[:, :, None]):
        assert np.array_equal(load_image(values).pixels, np.repeat(grey[:, :, None], 3, axis=2))
    assert load_image(np.dstack([PIXELS, np.zeros(PIXELS.shape[:2], np.uint8)])).pixels.min() == 255
    assert load_image(np.eye(8, dtype=bool)).pixels.max() == 255


def test_a_stated_range_maps_its_ends_to_black_and_white() -> None:
    counts = np.array([[0, 4095], [1024, 2048]], np.uint16)
    assert load_image(counts, value_range=(0, 4095)).pixels[:, :, 0].tolist() == [[0, 255], [64, 128]]
    metres = np.array([[-10, 10], [0, 5]], np.int32)
    assert load_image(metres, value_range=(-10, 10)).pixels[:, :, 0].tolist() == [[0, 255], [128, 191]]


def test_a_picture_of_pillow_is_turned_by_its_exif_and_stays_as_it_is() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    given = Image.open(io.BytesIO(encode(exif=exif)))
    assert load_image(given).size == (12, 20)
    assert given.size == (20, 12)


def test_an_id_may_be_given(path: Path) -> None:
    assert load_image(path, id="first").ref.id == "first"
    assert load_image(PIXELS).ref.id == load_image(PIXELS.copy()).ref.id != load_image(PIXELS[:, ::-1]).ref.id


@pytest.mark.parametrize(
    ("given", "kind", "problem", "fix"),
    [
        (None, InputError, "None holds no image", "give one of these"),
        (3, InputError, "a int holds no image", "give one of these"),
        ({"a": PIXELS}, InputError, "a dict holds no image", "give one of these"),
        ("", ImageError, "the path is empty", "give the path"),
        (Path("gone.png"), ImageError, "no such file", "check the path"),
        (b"", ImageError, "the file is empty", "open it"),
        (b"not an image", ImageError, "unsupported format", "convert it"),
        (io.StringIO("text"), ImageError, "gives text", "'rb'"),
        (io.BytesIO(), ImageError, "nothing is left", "seek(0)"),
        (PIXELS.transpose(2, 0, 1), ImageError, "not an image", "array.transpose(1, 2, 0)"),
        (np.zeros((5, 4, 2), np.uint8), ImageError, "not an image", "cut out one image"),
        (np.zeros((0, 4), np.uint8), ImageError, "not an image", "cut out"),
        (PIXELS.astype(np.float32), ImageError, "leave their range", "value_range=(0, 255)"),
        (np.full((8, 8), np.nan), ImageError, "leave their range", "nan_to_num"),
        (PIXELS.astype(np.int64), ImageError, "has no usual range", "state the range"),
        (np.full((8, 8), 1j), ImageError, "has no usual range", "state the range"),
        (np.array([["a", "b"]]), ImageError, "has no usual range", "state the range"),
    ],
)
def test_what_is_no_image_is_refused_with_a_reason_and_a_fix(
    given: Any, kind: type[ResightError], problem: str, fix: str
) -> None:
    with pytest.raises(kind) as caught:
        load_image(given)
    assert problem in caught.value.problem and fix in caught.value.fix
    assert caught.value.expected and caught.value.actual


@pytest.mark.parametrize("value_range", [(1, 1), (2, 1), (0, float("nan")), 3, ("a", "b"), (0, 1, 2)])
def test_a_range_that_is_none_is_refused(value_range: Any) -> None:
    with pytest.raises(ImageError, match="value_range does not fit"):
        load_image(PIXELS, value_range=value_range)


def test_only_arrays_have_a_range(path: Path) -> None:
    with pytest.raises(InputError, match="only arrays"):
        load_image(path, value_range=(0, 255))


def test_a_closed_file_object_is_refused(path: Path) -> None:
    with path.open("rb") as file:
        pass
    with pytest.raises(ImageError, match="closed file"):
        load_image(file)


def test_an_image_of_pillow_without_a_file_behind_it_is_refused(path: Path) -> None:
    with Image.open(path) as image:
        pass
    with pytest.raises(ImageError, match=r"a\.png"):
        load_image(image)


@pytest.mark.parametrize(
    ("given", "several"),
    [
        ([PIXELS], True),
        ((), True),
        (iter([PIXELS]), True),
        (np.zeros((2, 8, 8, 3)), True),
        (np.array(["a.png", "b.png"]), True),
        (PIXELS, False),
        ("a.png", False),
        (Path("a.png"), False),
        (b"", False),
        (io.BytesIO(), False),
        (Image.fromarray(PIXELS), False),
        ({"a": 1}, False),
        (3, False),
    ],
)
def test_lists_iterators_and_arrays_of_one_more_dimension_hold_several(given: Any, several: bool) -> None:
    assert is_batch(given) is several


def test_an_address_is_fetched_and_decoded_in_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    find = sandbox.find_shared
    monkeypatch.setattr(sandbox, "find_shared", lambda always=False: asked.append(always) or find(always))
    with serve_files({"/a.png": Served(encode()), "/moved": Served(b"", redirect="/a.png")}) as server:
        picture = load_image(f"{server.url}/a.png")
        assert np.array_equal(load_image(f"{server.url}/moved").pixels, PIXELS)
        assert np.array_equal(load_image(Path(f"{server.url}/a.png")).pixels, PIXELS)
    assert np.array_equal(picture.pixels, PIXELS)
    assert picture.ref.id == "a.png"
    assert True in asked


def test_an_address_has_limits_of_size_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "/large.png": Served(encode()),
        "/slow.png": Served(encode(), stall=2.0),
        "/torn.png": Served(encode(), extra_length=9),
        "/page.png": Served(b"<html></html>"),
    }
    with serve_files(files) as server:
        with pytest.raises(ImageError, match="unsupported format"):
            load_image(f"{server.url}/page.png")
        for name, problem in (("torn", "was not read"), ("gone", "does not give out")):
            with pytest.raises(InputError, match=problem):
                load_image(f"{server.url}/{name}.png")
        with pytest.raises(InputError, match="was not read") as caught:
            http_download.read_bytes(f"{server.url}/slow.png", 10**6, 0.3)
        assert caught.value.expected == "the whole file within 0.3 seconds"
        monkeypatch.setattr(image_inputs, "MAX_BYTES", 20)
        with pytest.raises(InputError, match="too large"):
            load_image(f"{server.url}/large.png")
    with pytest.raises(InputError):
        load_image(f"{server.url}/a.png")  # the server is gone


def test_an_address_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ResightError, match="gopher"):
        load_image("gopher://example.org/a.png")
