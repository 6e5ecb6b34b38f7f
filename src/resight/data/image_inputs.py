"""An image in any form of Python in, a Picture out: a path, an address, pixels, bytes or a file object.

    str              an address if it begins with http://, https://, s3:// or another scheme, otherwise a path; searches
                     take the id of a stored image too, where no such file exists
    Path, ImageRef   a file, local or remote; the box of an ImageRef is the part to look at
    PIL.Image        as its file would be: upright by EXIF, transparency on white
    numpy, torch     [H, W], [H, W, 1], [H, W, 3] RGB or [H, W, 4] RGBA; of a tensor, channels may come first.
                     uint8 counts from 0 to 255, uint16 from 0 to 65535, bool and float from 0 to 1;
                     `value_range` states another range: (black, white)
    bytes, file      an image file; a file object is read from where it stands, to its end
    Hit, ImageRecord the file that it names

A list, a tuple, an iterator or an array with one more dimension holds several (`is_batch`). Files from the network are
read within MAX_BYTES and SECONDS, and decoded in the sandbox. torch is never imported.
"""

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from resight.data import image_files, sandbox
from resight.data.decode import MAX_PIXELS, Decoded, convert_image
from resight.errors import ImageError, InputError
from resight.files import remote
from resight.files.fingerprint import fingerprint
from resight.types import ImageRef, Picture

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_BYTES = 1 << 28  # of a file from the network
SECONDS = 30.0  # for it to arrive
BEYOND = 0.01  # share of the range by which values may exceed it, as resizing makes them do
CHANNELS = (1, 3, 4)
NAMED = 8  # digits of the fingerprint that names an image without a name
RANGES = {"uint8": (0.0, 255.0), "uint16": (0.0, 65535.0), "bool": (0.0, 1.0)}
KINDS = "a path, an address, an ImageRef, a PIL image, an array, a tensor, bytes or a file object"


@runtime_checkable
class Pixels(Protocol):
    """An array of numpy, or of a library that numpy can read: torch, jax, …"""

    shape: Any

    def __array__(self) -> NDArray[Any]: ...


class Located(Protocol):
    """A Hit, or a record of a collection."""

    @property
    def path(self) -> Path: ...


ImageInput: TypeAlias = (
    str
    | os.PathLike[str]
    | ImageRef
    | Picture
    | Located
    | Image.Image
    | Pixels
    | bytes
    | bytearray
    | memoryview
    | IO[bytes]
)


def load_image(
    image: ImageInput,
    *,
    value_range: tuple[float, float] | None = None,
    id: str = "",
) -> Picture:
    """Decode an image in any form, to search for it, encode it or look at its pixels.

    `search` and `encode` call it themselves; call it where an array's values need a `value_range`, or an image an id.

    Args:
        image: A path, an address (http, https, s3), an ImageRef, a PIL image, an array or tensor, bytes of an image
            file, or a file object.
        value_range: The values of an array that are black and white; default: 0 and 255 for uint8, 0 and 65535 for
            uint16, 0 and 1 for float.
        id: Its name in answers and messages; default: that of its file.

    Returns:
        The picture: `pixels` [H, W, 3] RGB, upright, and the `size` of the original.

    Raises:
        ImageError: It cannot be read or decoded, or its values leave the range.
        InputError: It is nothing that holds an image, or its address does not answer.

    Examples:
        >>> import numpy as np
        >>> import resight
        >>> counts = np.arange(4096, dtype=np.uint16).reshape(64, 64)  # of a camera with 12 bits
        >>> picture = resight.load_image(counts, value_range=(0, 4095), id="frame 1")
        >>> picture.pixels.shape, int(picture.pixels.max())
        ((64, 64, 3), 255)
        >>> resight.load_image("query.jpg").size
        (480, 319)
    """
    picture = read_input(image, value_range=value_range)
    return replace(picture, ref=replace(picture.ref, id=id)) if id else picture


def read_input(
    given: ImageInput,
    max_side: int | None = None,
    read: "Callable[[ImageRef, int | None], Picture]" = image_files.read,
    value_range: tuple[float, float] | None = None,
) -> Picture:
    """The image, its longer side reduced to `max_side` where that saves decoding; `read` decodes files."""
    if value_range is not None and not isinstance(given, Pixels):
        raise InputError(
            "only arrays have a value_range",
            expected="an array of numpy or a tensor",
            actual=f"{_name_kind(given)}",
            fix="leave value_range out",
        )
    if isinstance(given, Picture):
        return given
    if isinstance(given, (str, os.PathLike, ImageRef)) or _names_file(given):
        ref = _refer(given)
        return read(ref, None if ref.box else max_side) if isinstance(ref, ImageRef) else _read_remote(ref, max_side)
    data = read_bytes(given)
    if data is not None:
        name = Path(_name_object(given)).name or f"bytes-{fingerprint(data, NAMED)}"
        return image_files.read_bytes(data, name, max_side)
    if isinstance(given, Image.Image):
        return _read_pil(given, max_side)
    if isinstance(given, Pixels):
        return _read_array(_to_numpy(given), value_range)
    raise InputError(
        f"{_name_kind(given)} holds no image",
        expected=KINDS,
        actual=repr(given)[:100],
        fix="give one of these; several images as a list",
    )


def is_batch(given: Any) -> bool:
    """Whether it holds several images: a list, a tuple, an iterator, or an array with a dimension for them."""
    if isinstance(given, (str, bytes, bytearray, memoryview, os.PathLike, Picture, ImageRef, dict)):
        return False
    if isinstance(given, Image.Image) or _is_readable(given) or _names_file(given):
        return False
    return len(given.shape) in (1, 4) if isinstance(given, Pixels) else isinstance(given, Iterable)


def _refer(given: Any) -> ImageRef | str:
    """The file to read, or the address to fetch."""
    if isinstance(given, ImageRef):
        return given
    if isinstance(given, (str, os.PathLike)):
        text = os.fspath(given)
        if not text:
            raise _refuse("the path is empty", KINDS, "an empty text", "give the path of an image")
        url = text if isinstance(given, str) and "://" in text else remote.to_url(text)
        return url if remote.is_remote(text) else ImageRef(Path(text).name, Path(text))
    return ImageRef(str(getattr(given, "id", given.path)), Path(given.path))


def read_bytes(given: object) -> bytes | None:
    """The bytes of an image file that an object holds or reads; None if it is of another kind."""
    if isinstance(given, (bytes, bytearray, memoryview)):
        return bytes(given)
    if not _is_readable(given) or isinstance(given, Image.Image):
        return None
    name = _name_object(given) or "the given file object"
    try:
        data = given.read(image_files.MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # a closed file raises ValueError
        raise _refuse(
            f"cannot read {name}: {error}", "a file opened for reading bytes", type(given).__name__, "open it with 'rb'"
        ) from error
    if not isinstance(data, bytes):
        raise _refuse(f"cannot read {name}: it gives text", "a file that gives bytes", "text", "open it with 'rb'")
    if not data:
        raise _refuse(
            f"cannot read {name}: nothing is left in it",
            "a file object that stands at the beginning of an image",
            "its end",
            "call its seek(0) before",
        )
    return data


def is_web_address(given: object) -> bool:
    return isinstance(given, str) and given.lower().startswith(("http://", "https://"))


def fetch(url: str) -> bytes:
    """The file at an http address, within MAX_BYTES and SECONDS."""
    from resight.data.http_download import read_bytes  # few images come from there

    return read_bytes(url, MAX_BYTES, SECONDS)


def _read_remote(url: str, max_side: int | None) -> Picture:
    """An image from the network, decoded in the sandbox."""
    shared = sandbox.find_shared(always=True)
    data, modified_ns = (fetch(url), 0) if is_web_address(url) else image_files.read_file(Path(url), shared)
    decode = shared.decode if shared else image_files.decode_bytes
    ref = ImageRef(Path(url.partition("?")[0]).name or url, Path(url))
    return image_files.assemble(ref, data, decode(data, url, max_side, MAX_PIXELS), modified_ns)


def _name_object(given: object) -> str:
    name = getattr(given, "name", "")
    return name if isinstance(name, str) else ""


def _read_array(values: NDArray[Any], value_range: tuple[float, float] | None) -> Picture:
    if values.ndim == 2:
        values = values[:, :, None]
    if values.ndim != 3 or values.shape[2] not in CHANNELS or not values.size:
        first = values.ndim == 3 and values.shape[0] in CHANNELS
        raise _refuse(
            "the array is not an image",
            "[H, W], [H, W, 1], [H, W, 3] or [H, W, 4]",
            f"{list(values.shape)}",
            "move the channels to the end: array.transpose(1, 2, 0)" if first else "cut out one image",
        )
    if values.shape[0] * values.shape[1] > MAX_PIXELS:
        raise _refuse(
            "the array is too large", f"at most {MAX_PIXELS:,} pixels", f"{list(values.shape)}", "reduce the image"
        )
    pixels = _to_bytes(values, value_range)
    size = (pixels.shape[1], pixels.shape[0])
    if pixels.shape[2] == 4:  # on white, like a file
        alpha = pixels[:, :, 3:].astype(np.uint16)
        mixed = (pixels[:, :, :3] * alpha + 255 * (255 - alpha) + 127) // 255
        pixels = mixed.astype(np.uint8)
    pixels = np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3)))
    return _assemble(f"array-{fingerprint(pixels.tobytes(), NAMED)}", Decoded(pixels, size, "RGB", 1, None))


def _read_pil(given: Image.Image, max_side: int | None) -> Picture:
    file = str(getattr(given, "filename", "") or "")
    decoded = convert_image(given, file or "the given image", max_side)
    return _assemble(Path(file).name or f"image-{fingerprint(decoded.pixels.tobytes(), NAMED)}", decoded)


def _assemble(name: str, decoded: Decoded) -> Picture:
    """A picture without a file."""
    return replace(image_files.assemble(name, b"", decoded), sha256="")


def _to_bytes(values: NDArray[Any], value_range: tuple[float, float] | None) -> NDArray[np.uint8]:
    """Values of any type as 0 … 255."""
    kind = values.dtype
    if value_range is None and kind == np.uint8:
        return values
    low, high = _check_range(kind, value_range)
    least, most = float(values.min()), float(values.max())
    margin = BEYOND * (high - low) if kind.kind == "f" else 0.0
    if not (low - margin <= least and most <= high + margin):  # also for NaN
        raise _refuse(
            "the values of the array leave their range",
            f"{low:g} to {high:g}" + ("" if value_range else f", as {kind} has without a value_range"),
            f"{least:g} to {most:g}",
            "replace values that are not finite, e.g. by np.nan_to_num"
            if not np.isfinite([least, most]).all()
            else "state the range: resight.load_image(array, value_range=(0, 255)); undo a normalisation by mean and "
            "deviation first",
        )
    scaled = (values.astype(np.float32) - np.float32(low)) * np.float32(255.0 / (high - low))
    return np.asarray(np.clip(np.rint(scaled), 0, 255), np.uint8)


def _check_range(kind: np.dtype[Any], given: Any) -> tuple[float, float]:
    if given is not None:
        try:
            low, high = (float(value) for value in given)
        except (TypeError, ValueError):
            low = high = 0.0
        if not (low < high and np.isfinite([low, high]).all()) or kind.kind not in "buif":
            raise _refuse(
                "the value_range does not fit",
                "two numbers, black and white, the first smaller; and an array of numbers",
                f"{given!r} for {kind}",
                "e.g. value_range=(0, 4095)",
            )
        return low, high
    found = (0.0, 1.0) if kind.kind == "f" else RANGES.get(kind.name)
    if found is None:
        raise _refuse(
            f"an array of {kind} has no usual range",
            "uint8, uint16, bool or float, or a value_range",
            str(kind),
            "state the range: resight.load_image(array, value_range=(0, 255))",
        )
    return found


def _to_numpy(given: Any) -> NDArray[Any]:
    """The values of an array or a tensor; channels last."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(given, torch.Tensor):
        return np.asarray(given)
    values = given.detach().cpu()
    if values.is_floating_point():
        values = values.float()  # numpy has no bfloat16
    found: NDArray[Any] = np.asarray(values.numpy())
    is_first = found.ndim == 3 and found.shape[0] in CHANNELS
    return found.transpose(1, 2, 0) if is_first else found


def _names_file(given: Any) -> bool:
    return isinstance(getattr(given, "path", None), (str, os.PathLike)) and not _is_readable(given)


def _is_readable(given: Any) -> TypeGuard[IO[bytes]]:
    return callable(getattr(given, "read", None))


def _refuse(problem: str, expected: str, actual: str, fix: str) -> ImageError:
    return ImageError(problem, expected=expected, actual=actual, fix=fix)


def _name_kind(given: Any) -> str:
    return "None" if given is None else f"a {type(given).__name__}"
