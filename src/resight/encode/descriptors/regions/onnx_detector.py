"""Any detector in an ONNX file that gives boxes, with or without classes.

In: a picture, as planes [1, 3, height, width]. Out: at most `most` boxes with a score of `threshold` or more. The
file's outputs are boxes [n, 4] or [1, n, 4] and optionally scores [n], [1, n] or [1, n, classes], of which the best
class counts. Settings give the format of the boxes: in pixels of the input or in fractions of it ("shares"), by corners
or by centre, width and height. The input shows the picture distorted to its size ("squash") or in its upper left corner
("corner", a letterbox).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from resight.encode.onnx_graph import check_names, find_input, read_model, run, start
from resight.encode.preprocess import letterbox, make_statistics, prepare
from resight.encode.regions import USUAL_FINEST, Form, Proposals, keep_best, to_pixels
from resight.errors import RecipeError
from resight.files.fingerprint import fingerprint_file
from resight.plugins import check_range
from resight.types import FloatArray, Picture


@dataclass(frozen=True)
class Config:
    model: Path  # path of the ONNX file
    boxes: str = "boxes"  # name of the output with the boxes
    scores: str = "scores"  # name of the output with the scores; "": none, all boxes are equal
    units: Literal["pixels", "shares"] = "pixels"  # unit of the boxes: pixels of the input, or shares of it (0 to 1)
    form: Form = "corners"  # format of the boxes: corners (x0, y0, x1, y1), or centre (x, y, width, height)
    threshold: float = 0.25  # lowest score of a box
    most: int = 20  # most boxes per image; those with the best scores stay
    size: int = 640  # input side in pixels, where the file has no fixed size
    fit: Literal["squash", "corner"] = "squash"  # squash: distort to the input; corner: keep proportions (letterbox)
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)  # mean colour of the training images: red, green, blue, 0 to 1
    deviation: tuple[float, ...] = (0.229, 0.224, 0.225)  # standard deviation of the training images' colours, 0 to 1
    threads: int = 1  # CPU threads per picture; several pictures are encoded in parallel

    def __post_init__(self) -> None:
        check_range("most", self.most, 1)
        check_range("size", self.size, 1, 4096)
        check_range("threads", self.threads, 1, 256)


def build(config: Config) -> "OnnxDetector":
    return OnnxDetector(config)


class OnnxDetector:
    finest = USUAL_FINEST

    def __init__(self, config: Config) -> None:
        model = read_model(config.model)
        self._input, (height, width) = find_input(model.graph, config.model.name)
        self._height, self._width = height or config.size, width or config.size
        if config.fit == "corner" and self._height != self._width:
            raise RecipeError(
                "this network's input is not square",
                expected="a square, or fit = 'squash'",
                actual=f"{self._width} × {self._height} pixels",
                fix="fit = 'squash'",
            )
        self._outputs = [name for name in (config.boxes, config.scores) if name]
        check_names(self._outputs, [value.name for value in model.graph.output], config.model.name, "outputs")
        self._statistics = make_statistics(config.mean, config.deviation)
        self._session = start(model, config.threads, config.model.name)
        self._config = config
        self.fingerprint = (
            f"onnx_detector({', '.join(self._outputs)}, {config.units}, {config.form}, threshold={config.threshold}, "
            f"most={config.most}, size={self._width}x{self._height}, fit={config.fit}, mean={config.mean}, "
            f"deviation={config.deviation}, model={fingerprint_file(config.model, 8)})"
        )

    def propose(self, picture: Picture) -> Proposals:
        if self._config.fit == "squash":
            planes, covers = prepare(picture, self._width, self._height, "squash", self._statistics)
        else:
            planes, covers = letterbox(picture, self._width, self._statistics)
        boxes, *rest = run(self._session, self._outputs, {self._input: planes})
        rows = read_rows(boxes, rest[0] if rest else None)
        if self._config.units == "pixels":
            sides = np.array([self._width, self._height] * 2, np.float32)
            rows = Proposals(rows.boxes / sides, rows.scores)
        kept = rows.scores >= self._config.threshold if rest else np.ones(len(rows.scores), bool)
        return keep_best(
            Proposals(to_pixels(rows.boxes[kept], self._config.form, covers), rows.scores[kept]), self._config.most
        )


def read_rows(boxes: FloatArray, scores: FloatArray | None) -> Proposals:
    """Outputs of a network for one picture → [n, 4] and [n], or an error that shows their shapes."""
    rows = boxes[0] if boxes.ndim == 3 and len(boxes) == 1 else boxes
    if scores is None:
        scores = np.ones(len(rows), np.float32)
    flat = scores[0] if scores.ndim > 1 and len(scores) == 1 and boxes.ndim == 3 else scores
    best = flat.max(axis=1) if flat.ndim == 2 and flat.shape[1] else flat
    if rows.ndim != 2 or rows.shape[1] != 4 or best.shape != rows.shape[:1]:
        raise RecipeError(
            "these outputs are not boxes with scores",
            expected="boxes [n, 4] or [1, n, 4], scores [n], [1, n] or [1, n, classes]",
            actual=f"{list(boxes.shape)} and {list(scores.shape)}",
            fix="set boxes and scores to the names of other outputs",
        )
    return Proposals(np.asarray(rows, np.float32), np.asarray(best, np.float32))
