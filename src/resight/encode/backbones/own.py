"""An encoder of your own, which a program gives: a function or a network in, a backbone out (`wrap_encoder`).

In: pictures, as PIL images. What the encoder returns for B of them decides what it is:

    [B, D]         one vector per image
    [B, T, D]      tokens: the last square number of them are the patches of a square grid, the first of the others CLS
    [B, C, H, W]   a feature map
    a result with `image_embeds`, `pooler_output` or `last_hidden_state`, as transformers returns it

A recipe, or a collection, names such an encoder by name and version. It cannot be loaded from there: the program gives
it again. Each call holds a lock, so that the encoder need not be safe for threads.
"""

import copy
import hashlib
import math
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from PIL import Image

from resight.encode.backbones import About, Backbone
from resight.errors import InputError, MissingExtra, SpaceMismatch
from resight.files.fingerprint import fingerprint
from resight.types import Choice, Features, FloatArray, Picture

ABOUT = About("your own", 0, "what it returns", "given by your program", "its own")
MOST_PREFIX = 8  # tokens before the patches: CLS and registers
REACH = 1024  # pixels per side that a network's processor needs at most
BATCH = 16
ADDRESS = re.compile(r" at 0x[0-9a-f]+", re.IGNORECASE)
Encode = Callable[[list[Image.Image]], Any]


@dataclass(frozen=True)
class Config:
    encoder: str = ""  # name that the program gives it (required)
    version: str = ""  # version that the program gives it; must change whenever its output does (required)


def build(config: Config) -> Backbone:
    raise _refuse_alone(config)


def find_weights(config: Config) -> None:
    raise _refuse_alone(config)


def _refuse_alone(config: Config) -> MissingExtra:
    return MissingExtra(
        f"the encoder {config.encoder!r} version {config.version!r} is not part of resight",
        expected="the encoder itself, from your program",
        actual="its name only",
        fix="give it: resight.open(path, encoder=resight.wrap_encoder(…))",
    )


def wrap_encoder(
    model: Any, *, name: str = "", version: str = "", processor: Any = None, size: int | None = None, batch: int = BATCH
) -> "OwnEncoder":
    """Make an encoder of your own usable in `resight.open` and `resight.load_encoder`.

    Args:
        model: A function that takes a list of PIL images and returns an array: [B, D], tokens [B, T, D] or a feature
            map [B, C, H, W]. Or a network of torch, timm, transformers or sentence-transformers, in eval mode.
        name: Its name; default: that of the network's class. A function needs one.
        version: Must change whenever the output does; default: a checksum of the network's weights and its processor. A
            function needs one.
        processor: What makes the network's input: an image processor of transformers, or a function from a PIL image
            to a tensor. timm and sentence-transformers have their own.
        size: Resize pictures to a square of this side before; default: as they are.
        batch: Images per call.

    Returns:
        The encoder.

    Raises:
        InputError: A part is missing, or the network is in training mode.

    Examples:
        >>> import numpy as np
        >>> import resight
        >>> def mean_colour(images):
        ...     return np.stack([np.asarray(image, np.float32).mean(axis=(0, 1)) for image in images])
        >>> encoder = resight.wrap_encoder(mean_colour, name="mean colour", version="1")
        >>> photos = resight.open("colours.resight", encoder=encoder)
        >>> photos.add("photos/").added
        10
        >>> len(photos.search("query.jpg", k=3))
        3
    """
    if isinstance(model, OwnEncoder):
        return model
    torch = sys.modules.get("torch")
    is_network = torch is not None and isinstance(model, cast(Any, torch).nn.Module)
    if not is_network and not callable(model):
        raise InputError(
            f"a {type(model).__name__} is no encoder",
            expected="a function, a network of torch, the name of an encoder, or an ONNX file",
            actual=repr(model)[:100],
            fix="give a function that takes a list of PIL images and returns an array [B, D]",
        )
    if is_network:
        name, version = name or type(model).__name__, version or _fingerprint_network(model, processor)
    if not (name and version):
        raise InputError(
            "an encoder of your own needs a name and a version",
            expected="both: collections compare them, so that vectors of two encoders are never mixed",
            actual=f"name = {name!r}, version = {version!r}",
            fix='e.g. resight.wrap_encoder(function, name="mean colour", version="1")',
        )
    encode = _choose_call(model, processor) if is_network else cast(Encode, model)
    side = size or (REACH if is_network else None)
    return OwnEncoder(encode, name, version, size, side, batch)


class OwnEncoder:
    def __init__(
        self, encode: Encode, name: str, version: str, size: int | None, max_side: int | None, batch: int
    ) -> None:
        if batch < 1 or (size is not None and size < 1):
            raise InputError("not a number of images or pixels", expected="1 or more", actual=f"{batch}, {size}")
        self.choice = Choice("own", {"encoder": name, "version": version})
        self.fingerprint = f"own({name}, version={version}" + (f", size={size})" if size else ")")
        self.max_side = max_side
        self.batch = batch
        self._encode = encode
        self._size = size
        self._lock = threading.Lock()

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        if scale != 1 and self._size is None:
            raise InputError(
                "this encoder has no scale", expected="scale 1, or a size", actual=f"{scale:g}", fix="wrap it with size"
            )
        for at in range(0, len(pictures), self.batch):
            some = pictures[at : at + self.batch]
            with self._lock:
                output = self._encode([self._show(picture, scale) for picture in some])
            patches, grid, cls, head = read_output(output, len(some), self.choice)
            for row, picture in enumerate(some):
                own = slice(row, row + 1)
                yield Features(
                    ids=(picture.ref.id,),
                    patches=patches[own],
                    sizes=np.array([picture.size], np.int32),
                    grid=grid,
                    cls=None if cls is None else cls[own],
                    head=None if head is None else head[own],
                )

    def _show(self, picture: Picture, scale: float) -> Image.Image:
        image = Image.fromarray(picture.pixels)
        if self._size is None:
            return image
        side = max(round(self._size * scale), 1)
        return image.resize((side, side), Image.Resampling.BICUBIC)


Parts = tuple[FloatArray, tuple[int, int], FloatArray | None, FloatArray | None]  # patches, grid, cls, head


def read_output(output: Any, count: int, encoder: Choice) -> Parts:
    """Patches [B, N, D], their grid, CLS [B, D] and the network's own vector [B, P]."""
    head = None
    if not hasattr(output, "shape") and not isinstance(output, (list, tuple)):
        found = [_pick(output, name) for name in ("last_hidden_state", "image_embeds", "pooler_output")]
        head = next((_to_array(one, encoder) for one in found[1:] if one is not None), None)
        output = found[0] if found[0] is not None else output if head is None else head
    values = _to_array(output, encoder)
    if head is not None:
        head = head.reshape(len(head), -1)  # pooled maps are [B, D, 1, 1]
    if values.ndim not in (2, 3, 4) or len(values) != count or not values.size:
        raise _refuse(encoder, f"[{count}, D], [{count}, T, D] or [{count}, C, H, W]", f"{list(values.shape)}")
    if not np.isfinite(values).all():
        raise _refuse(encoder, "finite numbers", "NaN or infinity")
    if values.ndim == 2:
        return values[:, None], (1, 1), None, values
    if values.ndim == 4:
        rows, columns = values.shape[2:]
        patches = np.ascontiguousarray(values.reshape(count, values.shape[1], -1).transpose(0, 2, 1))
        return patches, (rows, columns), None, head
    side = math.isqrt(values.shape[1])
    prefix = values.shape[1] - side * side
    if prefix > MOST_PREFIX:
        raise _refuse(encoder, "tokens of a square grid, after CLS and registers", f"{values.shape[1]} tokens")
    return values[:, prefix:], (side, side), values[:, 0] if prefix else None, head


def check_given(named: Choice, given: Choice) -> None:
    """Refuse an encoder of another name or version than a collection names."""
    if named != given:
        raise SpaceMismatch(
            "the collection was made with another encoder",
            expected=_describe(named),
            actual=_describe(given),
            fix="give the encoder that it was made with, or index into a new collection",
        )


def _describe(choice: Choice) -> str:
    return f"{choice.name} ({', '.join(f'{key} {value}' for key, value in choice.settings.items())})"


def _choose_call(model: Any, processor: Any) -> Encode:
    """How a network of torch encodes PIL images."""
    home = {kind.__module__.partition(".")[0] for kind in type(model).__mro__}
    if "sentence_transformers" in home:
        return lambda images: model.encode(images, convert_to_numpy=True, show_progress_bar=False)
    if processor is None and "timm" in home:
        return _call_timm(model)
    if processor is None:
        raise InputError(
            "a network needs what makes its input",
            expected="a processor: an image processor of transformers, or a function from a PIL image to a tensor",
            actual="none",
            fix="e.g. resight.wrap_encoder(network, processor=transform)",
        )
    torch: Any = sys.modules["torch"]
    is_of_transformers = type(processor).__module__.startswith("transformers")
    run = getattr(model, "get_image_features", model) if is_of_transformers else model

    def call(images: list[Image.Image]) -> Any:
        device = next((one.device for one in model.parameters()), None)
        with _evaluating(model):
            if is_of_transformers:
                return run(**processor(images=images, return_tensors="pt").to(device))
            return run(torch.stack([processor(image) for image in images]).to(device))

    return call


def _call_timm(model: Any) -> Encode:
    """With timm's own transform, which shows the whole picture instead of its middle."""
    import timm
    import torch

    config = timm.data.resolve_model_data_config(model)
    transform = timm.data.create_transform(**{**config, "crop_pct": 1.0, "crop_mode": "squash"}, is_training=False)
    is_map_last = getattr(model, "output_fmt", "NCHW") == "NHWC"
    prefix = getattr(model, "num_prefix_tokens", 0)

    def call(images: list[Image.Image]) -> Any:
        device = next((one.device for one in model.parameters()), None)
        with _evaluating(model):
            features = model.forward_features(torch.stack([transform(image) for image in images]).to(device))
            head = model.forward_head(features, pre_logits=True)
        if features.ndim == 4 and is_map_last:
            features = features.permute(0, 3, 1, 2)
        elif features.ndim == 3 and prefix and getattr(model, "cls_token", None) is None:
            features = features[:, prefix:]  # registers alone
        return {"last_hidden_state": features, "pooler_output": head}

    return call


def _evaluating(model: Any) -> Any:
    if getattr(model, "training", False):
        raise InputError(
            "the network is in training mode",
            expected="evaluation mode: otherwise its output depends on chance",
            actual="training = True",
            fix="call its eval() before",
        )
    torch: Any = sys.modules.get("torch")
    return torch.inference_mode() if torch else nullcontext()


def _fingerprint_network(model: Any, processor: Any) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().float().contiguous().numpy().tobytes())
    shown = "" if processor is None else ADDRESS.sub("", repr(copy.copy(processor)))
    return f"{digest.hexdigest()[:12]}{f'-{fingerprint(shown, 6)}' if shown else ''}"


def _pick(output: Any, name: str) -> Any:
    return output.get(name) if isinstance(output, Mapping) else getattr(output, name, None)


def _to_array(values: Any, encoder: Choice) -> FloatArray:
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        if isinstance(values, (list, tuple)) and values and isinstance(values[0], torch.Tensor):
            values = torch.stack(list(values))
        if isinstance(values, torch.Tensor):
            values = values.detach().cpu().float().numpy()
    try:
        return np.ascontiguousarray(values, np.float32)
    except (TypeError, ValueError) as error:
        raise _refuse(encoder, "an array of numbers", f"{type(values).__name__}: {error}") from error


def _refuse(encoder: Choice, expected: str, actual: str) -> InputError:
    return InputError(
        f"the encoder {encoder.settings['encoder']!r} returns what cannot be used",
        expected=expected,
        actual=actual,
        fix="return one vector [B, D] per image, or a square grid of tokens",
    )
