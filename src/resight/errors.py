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
    ├── TrainingError         7     training cannot go on; the last checkpoint is intact
    └── ServiceError          8     a service that `resight.Client` calls does not answer, or not as it should
        ├── AccessDenied            it wants another key
        └── ServiceBusy             it refused for now, also when asked again

Each error has up to four parts: the problem, what resight expected, what it got, and how to fix it.
"""

import difflib
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

COMPARED = 10_000  # known names that an unknown one is compared with


class ResightError(Exception):
    """Root of all errors that resight raises on purpose.

    `str()` gives the problem, then expected, actual and fix, one per line.

    Attributes:
        problem: What went wrong.
        expected: What resight expected.
        actual: What it got instead.
        fix: What to do about it.
        exit_code: The exit code of the command.

    Examples:
        >>> import resight
        >>> try:
        ...     resight.open("photo.resight", must_exist=True)
        ... except resight.ResightError as error:
        ...     print(error)
        there is no collection at photo.resight
          expected: a folder that holds collection.json
          actual: no such folder
          fix: check the path, or make one with `resight index PHOTOS --into COLLECTION`
    """

    exit_code = 1

    def __init__(self, problem: str, *, expected: str = "", actual: str = "", fix: str = "") -> None:
        self.problem = problem
        self.expected = expected
        self.actual = actual
        self.fix = fix
        parts = (("expected", expected), ("actual", actual), ("fix", fix))
        super().__init__("\n".join([problem, *(f"  {name}: {text}" for name, text in parts if text)]))

    def at_image(self, number: int) -> "ResightError":
        """Say which image of a batch the error concerns.

        Args:
            number: The image, counted from 1.

        Returns:
            The same error, whose problem begins with the image.
        """
        parts = {"expected": self.expected, "actual": self.actual, "fix": self.fix}
        error = type(self)(f"image {number:,} of the batch: {self.problem}", **parts)
        error.__cause__ = self
        return error


class InputError(ResightError):
    """The input cannot be used."""

    exit_code = 2


class ImageError(InputError):
    """The image cannot be decoded, or exceeds a limit."""


class BoxError(InputError):
    """The box lies outside its image, or has no area."""


class ManifestError(InputError):
    """A manifest or a data set on disk breaks its format."""


class RecipeError(InputError):
    """A recipe, plug-in name or setting is unknown or invalid."""


class CollectionError(ResightError):
    """The collection cannot be used as asked."""

    exit_code = 3


class SpaceMismatch(CollectionError):
    """The descriptors come from two different encodings."""


class VersionMismatch(CollectionError):
    """The collection has another format version."""


class CollectionBusy(CollectionError):
    """Another process is writing."""


class StorageError(ResightError):
    """The disk is full or not writable."""

    exit_code = 4


class MissingExtra(ResightError):
    """An optional dependency is not installed."""

    exit_code = 5


class MissingFile(MissingExtra):
    """A file that a recipe names does not exist."""


class MissingWeights(MissingExtra):
    """The weights of a network are missing and cannot be downloaded."""


class ClusterError(ResightError):
    """Nodes of a cluster are lost, do not answer or run different versions."""

    exit_code = 6


class TrainingError(ResightError):
    """Training cannot go on; the last checkpoint is intact."""

    exit_code = 7


class ServiceError(ResightError):
    """A service does not answer, or not as it should; raised by `resight.Client`."""

    exit_code = 8


class AccessDenied(ServiceError):
    """The service wants another key: none was sent, it is wrong, or it may not do this."""


class ServiceBusy(ServiceError):
    """The service refused for now, also when it was asked again."""


def install_extra(extra: str) -> str:
    """The command that installs an extra: of the installed package, or of the checkout that this file lies in."""
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "pyproject.toml").is_file() and (checkout / "src" / "resight").is_dir():
        return f"pip install -e '{checkout}[{extra}]'"
    return f"pip install 'resight[{extra}]'"


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """The fix for an unknown name: the known names that are spelt almost like it, or `otherwise`."""
    close = difflib.get_close_matches(word, islice(known, COMPARED), n=3)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else otherwise
