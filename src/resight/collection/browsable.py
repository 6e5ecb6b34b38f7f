"""A collection as Python and notebooks see it: `len`, `in`, iteration, `collection[id]`, a summary."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from resight.errors import CollectionError, did_you_mean
from resight.files.remote import to_url
from resight.types import Recipe

if TYPE_CHECKING:
    from resight.collection.view import View
    from resight.store import ImageRecord

SHOWN = 8  # pictures in a notebook


class Browsable:
    """What `Collection` offers to look at its images."""

    path: Path
    recipe: Recipe

    def view(self) -> "View":
        raise NotImplementedError

    def __iter__(self) -> Iterator[str]:
        return iter(self.view().stamps)

    def __contains__(self, name: object) -> bool:
        return name in self.view().stamps

    def __getitem__(self, name: str) -> "ImageRecord":
        view = self.view()
        record = view.find(name) if isinstance(name, str) else None
        if record is None:
            raise CollectionError(
                f"the collection holds no image {name!r}",
                expected="the id of an image",
                actual=repr(name),
                fix=did_you_mean(str(name), view.stamps, "`list(collection)` gives the ids"),
            )
        return record

    def __repr__(self) -> str:
        return f"<Collection {to_url(self.path)}: {len(self.view()):,} images, recipe {self.recipe.name}>"

    def _repr_html_(self) -> str:
        from resight.collection.answer_pictures import read_thumbnails
        from resight.explain.notebook import Card, draw_gallery

        view = self.view()
        first = list(islice(view.stamps, SHOWN))
        pictures = read_thumbnails({record.id: record.path for record in view.records(first)} if first else {})
        cards = [Card(pixels, (name,)) for name, pixels in pictures.items() if pixels is not None]
        notes = [f"recipe {self.recipe.name}", to_url(self.path)]
        if len(view) > len(cards) and cards:
            notes.insert(0, f"the first {len(cards):,} are shown")
        return draw_gallery(f"{self.path.name}: {len(view):,} images", cards, notes)
