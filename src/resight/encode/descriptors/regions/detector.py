"""Objects named by words: Grounding DINO (Liu et al., ECCV 2024) through the library transformers.

In: a picture and a prompt. Out: at most `most` boxes, scored by the likelihood of the prompt's best word. A region does
not need to know which word it was, so there is a threshold for boxes and none for words.

`model` is an id of the Hugging Face hub, or a folder with config.json, vocab.txt and the weights. The input
has its shorter side at `size` pixels, the longer at most 5/3 of that, as in training.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from resight.encode.networks import hub
from resight.encode.networks.checkpoint_loader import read, refuse_misfit, unwrap
from resight.encode.networks.pretrained import fetch_files, quieten
from resight.encode.networks.torch_backbone import SEED, Device, Settings, choose_device, hash_weights
from resight.encode.networks.torchvision_compat import declare_missing
from resight.encode.preprocess import make_statistics, prepare
from resight.encode.regions import USUAL_FINEST, Proposals, keep_best, to_pixels
from resight.errors import MissingWeights, RecipeError
from resight.files.documents import load_json
from resight.plugins import check_range
from resight.types import Picture

STATISTICS = make_statistics((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
LONGEST = 5 / 3  # of the shorter side
LEAST = 96  # pixels of the longer side: the coarsest map has a stride of 64, and its norm needs two cells
KIND = "grounding-dino"


@dataclass(frozen=True)
class Config:
    model: str = "IDEA-Research/grounding-dino-tiny"  # Grounding DINO: an id on the Hugging Face hub, or a folder
    prompt: str = "object. picture. building. sign. product."  # objects to find: phrases, each with a full stop
    threshold: float = 0.25  # lowest score of a box, 0 to 1
    most: int = 20  # most boxes per image; those with the best scores stay
    size: int = 800  # shorter side of the input in pixels; the longer side is at most 5/3 of it
    device: Device = "auto"  # where the network runs; auto: cuda, else mps, else cpu
    threads: int = 1  # CPU threads per picture; sets torch's number for the whole process
    untrained: bool = False  # use random weights, always the same: for tests and timing

    def __post_init__(self) -> None:
        check_range("threshold", self.threshold, 0, 1)
        check_range("most", self.most, 1)
        check_range("size", self.size, LEAST, 4096)
        check_range("threads", self.threads, 1, 256)
        if not self.prompt.strip(" ."):
            raise RecipeError("an empty prompt", expected="words", actual=repr(self.prompt), fix='e.g. "object."')


def build(config: Config) -> "Detector":
    declare_missing()
    try:
        return Detector(config)
    except MissingWeights as error:
        raise MissingWeights(
            error.problem,
            expected=error.expected,
            actual=error.actual,
            fix="connect to the network, set `model` to a folder with config.json, vocab.txt and the weights, "
            "or choose the region source saliency or grid",
        ) from error


class Detector:
    finest = USUAL_FINEST

    def __init__(self, config: Config) -> None:
        module = make_module(config) if config.untrained else load_module(config)
        vocabulary = _fetch(config.model, "vocab.txt")
        self._config = config
        self._device = choose_device(Settings(device=config.device))
        if self._device.type == "cpu":
            torch.set_num_threads(config.threads)
        self._module = module.eval().to(self._device)
        self._words = encode_prompt(config.prompt, vocabulary).to(self._device)
        words = self._words["input_ids"][0].tolist()
        self.fingerprint = (
            f"detector({KIND}, words={words}, threshold={config.threshold}, most={config.most}, size={config.size}, "
            f"weights={hash_weights(module)})"
        )

    def propose(self, picture: Picture) -> Proposals:
        planes, covers = prepare(picture, *fit_sides(picture.size, self._config.size), "squash", STATISTICS, "bilinear")
        shown = torch.from_numpy(planes).to(self._device)
        with torch.inference_mode():
            found = self._module(
                pixel_values=shown, pixel_mask=torch.ones_like(shown[:, 0], dtype=torch.long), **self._words
            )
        scores = found.logits[0].sigmoid().amax(dim=1).float().cpu().numpy()
        kept = scores >= self._config.threshold
        boxes = found.pred_boxes[0].float().cpu().numpy()[kept]
        return keep_best(Proposals(to_pixels(boxes, "centre", covers), scores[kept]), self._config.most)


def fit_sides(size: tuple[int, int], shorter: int) -> tuple[int, int]:
    """Width and height of the input: the shorter side as given, unless the longer would be too long."""
    scale = min(shorter / min(size), LONGEST * shorter / max(size))
    width, height = (max(round(side * scale), 32) for side in size)
    return width, height


def encode_prompt(prompt: str, vocabulary: Path) -> Any:
    """Phrases in lower case, each with a full stop, as in training."""
    phrases = [phrase.strip().lower() for phrase in prompt.split(".") if phrase.strip()]
    return transformers.BertTokenizer(str(vocabulary))(". ".join(phrases) + ".", return_tensors="pt")


def make_module(config: Config) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return _explain(config.model, lambda: transformers.GroundingDinoForObjectDetection(read_config(config.model)))


def load_module(config: Config) -> Any:
    settings = read_config(config.model)
    files = fetch_files(config.model)
    state = {name: tensor for path in files for name, tensor in unwrap(read(path), path).items()}
    with quieten():
        module, report = _explain(
            config.model,
            lambda: transformers.GroundingDinoForObjectDetection.from_pretrained(  # nosec B615  # no download: files given
                None,
                config=settings,
                state_dict=dict(state),  # a copy: the library empties it while it loads
                dtype=torch.float32,
                ignore_mismatched_sizes=True,
                output_loading_info=True,
            ),
        )
    reshaped = {name: (given, wanted) for name, given, wanted in sorted(report["mismatched_keys"])}
    if report["missing_keys"] or reshaped:
        own = module.state_dict()
        missing = {name: own[name].shape for name in sorted(report["missing_keys"])}
        raise refuse_misfit(files[0].name, missing, reshaped, {}, "take config.json and the weights from one model")
    return module


def read_config(model: str) -> Any:
    path = _fetch(model, "config.json")
    try:
        table = load_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RecipeError(f"{path} is not valid JSON", actual=str(error), fix="fetch the model again") from error
    if not isinstance(table, dict) or table.get("model_type") != KIND:
        raise RecipeError(
            f"{model} is not a detector that resight knows",
            expected=f"a config.json with the model_type {KIND}",
            actual=repr(table.get("model_type")) if isinstance(table, dict) else "no table",
            fix="choose a Grounding DINO, or export the network to ONNX and use the region source onnx_detector",
        )
    return _explain(model, lambda: transformers.GroundingDinoConfig.from_dict(table))


def _fetch(model: str, name: str) -> Path:
    folder = Path(model)
    if not folder.is_dir():
        return hub.fetch(model, [name])
    if not (folder / name).is_file():
        raise RecipeError(
            f"the folder {model} holds no {name}",
            expected="config.json, vocab.txt and the weights",
            actual=", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "nothing",
            fix="copy it there from the model's page",
        )
    return folder / name


def _explain(model: str, make: Callable[[], Any]) -> Any:
    """The result of `make`; the many errors of a config.json with impossible values become a RecipeError."""
    try:
        return make()
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise RecipeError(
            f"the configuration of {model} makes no sense",
            expected="values of a Grounding DINO",
            actual=f"{type(error).__name__}: {' '.join(str(error).split())[:200]}",
            fix="correct its config.json",
        ) from error
