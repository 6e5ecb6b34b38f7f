"""The classes of a set of images: records in, sizes and names out, in one pass that holds no images."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from resight.store import ImageRecord


@dataclass(frozen=True)
class Classes:
    sizes: Mapping[str, int]  # class → images
    names: Mapping[str, str]  # class → how people call it
    unlabelled: int  # images without a class

    @property
    def images(self) -> int:
        return sum(self.sizes.values()) + self.unlabelled


def count_classes(records: Iterable[ImageRecord], class_attribute: str, name_attribute: str = "") -> Classes:
    """Without an attribute that names them, classes are called what they are."""
    sizes: Counter[str] = Counter()
    names: dict[str, str] = {}
    unlabelled = 0
    for record in records:
        label = read_class(record, class_attribute)
        if label is None:
            unlabelled += 1
            continue
        sizes[label] += 1
        if label not in names:
            names[label] = str(record.attributes.get(name_attribute, label))
    return Classes(sizes, names, unlabelled)


def read_class(record: ImageRecord, attribute: str) -> str | None:
    """None: it has none, or an empty one."""
    value = record.attributes.get(attribute)
    return None if value is None or value == "" else str(value)
