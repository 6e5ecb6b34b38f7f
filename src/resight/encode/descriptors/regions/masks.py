"""Boxes around the masks of a SAM-type network (Kirillov et al., ICCV 2023), in two ONNX files.

In: a picture. Out: at most `most` boxes. The encoder runs once, on the picture in the upper left corner of a square;
the decoder then segments what lies under each point of a grid of points × points. A mask becomes the box of its largest
connected part, scored by the network's own estimate of the fit (`iou_predictions`).

The files follow the common export:

    encoder   picture [1, 3, side, side] → embeddings
    decoder   image_embeddings, point_coords, point_labels, mask_input, has_mask_input, orig_im_size
              → masks [1, m, h, w] (above 0: inside), iou_predictions [1, m]
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from resight.encode.onnx_graph import check_names, choose_output, find_input, read_model, run, start
from resight.encode.preprocess import fit_longest, letterbox, make_statistics
from resight.encode.regions import USUAL_FINEST, Proposals, keep_best, make_proposals, to_pixels
from resight.files.fingerprint import fingerprint_file
from resight.plugins import check_range
from resight.types import Box, FloatArray, Picture

INPUTS = ("image_embeddings", "point_coords", "point_labels", "mask_input", "has_mask_input", "orig_im_size")
OUTPUTS = ("masks", "iou_predictions")
PROMPT_SIDE = 256  # of the mask prompt, which stays empty
MASK_SIDE = 256  # longer side of the masks: boxes need no more
ON, NO_POINT = 1.0, -1.0  # labels; a prompt without a box ends with a padding point


@dataclass(frozen=True)
class Config:
    encoder: Path  # ONNX file of the image encoder
    decoder: Path  # ONNX file of the mask decoder
    points: int = 8  # points per side of the grid of points that prompt the decoder
    threshold: float = 0.7  # lowest fit that the network predicts for a mask (iou_predictions), 0 to 1
    least: float = 0.003  # smallest mask to propose, as a share of the image's area
    most: int = 20  # most boxes per image; those with the best scores stay
    size: int = 1024  # input side in pixels, where the encoder's file has no fixed size
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)  # mean colour of the training images: red, green, blue, 0 to 1
    deviation: tuple[float, ...] = (0.229, 0.224, 0.225)  # standard deviation of the training images' colours, 0 to 1
    threads: int = 1  # CPU threads per picture; several pictures are encoded in parallel

    def __post_init__(self) -> None:
        check_range("points", self.points, 1, 64)
        check_range("least", self.least, 0, 1)
        check_range("most", self.most, 1)
        check_range("size", self.size, 16, 4096)
        check_range("threads", self.threads, 1, 256)


def build(config: Config) -> "Masks":
    return Masks(config)


class Masks:
    finest = USUAL_FINEST

    def __init__(self, config: Config) -> None:
        encoder, decoder = read_model(config.encoder), read_model(config.decoder)
        self._input, sides = find_input(encoder.graph, config.encoder.name)
        self._embeddings = choose_output(encoder.graph, "")
        self._side = max(sides) or config.size
        check_names(INPUTS, [value.name for value in decoder.graph.input], config.decoder.name, "inputs")
        check_names(OUTPUTS, [value.name for value in decoder.graph.output], config.decoder.name, "outputs")
        self._encoder = start(encoder, config.threads, config.encoder.name)
        self._decoder = start(decoder, config.threads, config.decoder.name)
        self._statistics = make_statistics(config.mean, config.deviation)
        self._config = config
        self.fingerprint = (
            f"masks(points={config.points}, threshold={config.threshold}, least={config.least}, most={config.most}, "
            f"size={self._side}, mean={config.mean}, deviation={config.deviation}, "
            f"models={fingerprint_file(config.encoder, 8)}+{fingerprint_file(config.decoder, 8)})"
        )

    def propose(self, picture: Picture) -> Proposals:
        square, _ = letterbox(picture, self._side, self._statistics)
        (embeddings,) = run(self._encoder, [self._embeddings], {self._input: square})
        boxes, scores = [], []
        for point in spread_points(fit_longest(picture.size, self._side), self._config.points):
            for mask, score in self._segment(embeddings, point, picture.size):
                box = box_mask(mask, self._config.least)
                if box is not None and score >= self._config.threshold:
                    boxes.append(box)
                    scores.append(score)
        shares = make_proposals(boxes, scores)
        covers = (0, 0, *picture.size)
        return keep_best(Proposals(to_pixels(shares.boxes, "corners", covers), shares.scores), self._config.most)

    def _segment(
        self, embeddings: Any, point: tuple[float, float], size: tuple[int, int]
    ) -> Iterator[tuple[FloatArray, float]]:
        """The masks [h, w] under a point, over the whole picture, each with its predicted fit."""
        width, height = fit_longest(size, MASK_SIDE)
        prompt = {
            "image_embeddings": embeddings,
            "point_coords": np.array([[point, (0, 0)]], np.float32),
            "point_labels": np.array([[ON, NO_POINT]], np.float32),
            "mask_input": np.zeros((1, 1, PROMPT_SIDE, PROMPT_SIDE), np.float32),
            "has_mask_input": np.zeros(1, np.float32),
            "orig_im_size": np.array([height, width], np.float32),
        }
        masks, fits = run(self._decoder, OUTPUTS, prompt)
        return zip(masks[0], fits[0].tolist(), strict=True)


def spread_points(size: tuple[int, int], count: int) -> list[tuple[float, float]]:
    """The centres of count × count cells of the picture, in pixels of the encoder's input, row by row."""
    width, height = size
    centres = [(number + 0.5) / count for number in range(count)]
    return [(x * width, y * height) for y in centres for x in centres]


def box_mask(mask: FloatArray, least: float) -> Box | None:
    """The box of the largest connected part of a mask, in fractions of its sides; None below `least` of its area."""
    rows, columns = mask.shape
    _, _, parts, _ = cv2.connectedComponentsWithStats((mask > 0).astype(np.uint8), connectivity=8)
    if len(parts) == 1:  # only background
        return None
    x, y, width, height, area = max(parts[1:].tolist(), key=lambda part: part[4])
    if area < least * rows * columns:
        return None
    return x / columns, y / rows, (x + width) / columns, (y + height) / rows
