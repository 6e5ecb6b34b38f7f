"""Every error that resight raises on purpose.

    ResightError                    exit code 1
    ├── InputError            2     what was given cannot be used
    │   ├── ImageError              an image that cannot be decoded, or is refused
    │   ├── BoxError                a box outside its image, or inside out
    │   ├── ManifestError           a manifest or a data set on disk that breaks its format
    │   └── RecipeError             a recipe, plug-in name or setting that does not exist
    ├── CollectionError       3     a collection that cannot be used as asked
    │   ├── SpaceMismatch           descriptors of two different encodings
    │   ├── VersionMismatch         a collection of another format version
    │   └── CollectionBusy          another process is writing
    ├── StorageError          4     the disk is full or does not let us write
    ├── MissingExtra          5     an optional dependency is not installed
    │   ├── MissingFile             a file that a recipe names is not here
    │   └── MissingWeights          a network's weights are not here and cannot be had
    ├── ClusterError          6     nodes of a Ray cluster that are lost, do not answer or do not fit together
    └── TrainingError         7     training that cannot go on; what was saved last is good

Each carries three sentences: what was expected, what came instead, and what to do about it.
"""


class ResightError(Exception):
    """Root of the tree; `str()` gives the problem, then expected, actual and the fix, one a line."""

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
