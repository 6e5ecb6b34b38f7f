"""Results that show themselves: what a Hit and an Evidence offer in a notebook, and who draws it.

The drawing itself needs images and lies above: a search gives each result its Drawer (collection/answer_pictures.py).
"""

from typing import TYPE_CHECKING, Any, Protocol

from resight.errors import InputError

if TYPE_CHECKING:
    from PIL import Image


class Drawer(Protocol):
    """Shows a Hit or an Evidence on the pictures of its query and its image."""

    def draw(self, found: Any) -> "Image.Image":
        """One picture: the query beside the image, with what links them."""

    def to_html(self, found: Any) -> str:
        """For a notebook."""


class Drawn:
    """A result with a `drawer`."""

    drawer: Drawer | None

    def _repr_html_(self) -> str | None:
        return self.drawer.to_html(self) if self.drawer else None


def require_drawer(drawer: Drawer | None, name: str) -> Drawer:
    """The drawer of the result called `name`; an error where it has none."""
    if drawer is None:
        raise InputError(
            f"the result {name!r} does not know the query that found it",
            expected="a result of `ask`, or of `search` with one image",
            actual="one of a batch of `search`, or one that was made by hand",
            fix="answers = collection.ask([…]); answers[0].hits[0].explain()",
        )
    return drawer
