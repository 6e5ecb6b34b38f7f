"""Every error that resight raises on purpose.

    ResightError                    exit code 1
    ├── InputError            2     the input cannot be used
    │   ├── ImageError              the image cannot be decoded, or exceeds a limit
    │   ├── BoxError                the box lies outside its image, or has no area
    │   ├── ManifestError           a manifest or a data set on disk breaks its format
    │   └── RecipeError             a recipe, plug-in name or setting is unknown or invalid
    ├── CollectionError       3     the collection cannot be used as asked
    │   ├── SpaceMismatch           the descriptors come from two different encodings
    │   ├── VersionMismatch         the collection has another format version
    │   └── CollectionBusy          another process is writing
    ├── StorageError          4     the disk is full or not writable
    ├── MissingExtra          5     an optional dependency is not installed
    │   ├── MissingFile             a file that a recipe names does not exist
    │   └── MissingWeights          a network's weights are not here and cannot be downloaded
    ├── ClusterError          6     nodes of a cluster are lost, do not answer or run different versions
    └── TrainingError         7     training cannot go on; the last checkpoint is intact

Each error has up to four parts: the problem, what resight expected, what it got, and how to fix it.
"""

import difflib
from collections.abc import Iterable


class ResightError(Exception):
    """Root of the tree; `str()` gives the problem, then expected, actual and fix, one per line."""

    exit_code = 1

    def __init__(self, problem: str, *, expected: str = "", actual: str = "", fix: str = "") -> None:
        self.problem = problem
        self.expected = expected
        self.actual = actual
        self.fix = fix
        parts = (("expected", expected), ("actual", actual), ("fix", fix))
        super().__init__("\n".join([problem, *(f"  {name}: {text}" for name, text in parts if text)]))


class InputError(ResightError):
    exit_code = 2


class ImageError(InputError):
    pass


class BoxError(InputError):
    pass


class ManifestError(InputError):
    pass


class RecipeError(InputError):
    pass


class CollectionError(ResightError):
    exit_code = 3


class SpaceMismatch(CollectionError):
    pass


class VersionMismatch(CollectionError):
    pass


class CollectionBusy(CollectionError):
    pass


class StorageError(ResightError):
    exit_code = 4


class MissingExtra(ResightError):
    exit_code = 5


class MissingFile(MissingExtra):
    pass


class MissingWeights(MissingExtra):
    pass


class ClusterError(ResightError):
    exit_code = 6


class TrainingError(ResightError):
    exit_code = 7


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """The fix for an unknown name: the known names that are spelt almost like it, or `otherwise`."""
    close = difflib.get_close_matches(word, list(known), n=3)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else otherwise
