"""SearchRequest: what one search asks for.

Every edge (command, HTTP, Python, audit, export, evaluation) makes one, and hands it on as it is. In: an image in any
form, and what the user wrote. Out: a frozen request whose filters are parsed, so that nothing behind the edge parses
them a second time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from resight.errors import BoxError, InputError
from resight.search.filters import Filter, Near, parse
from resight.types import Box, Query

if TYPE_CHECKING:
    from resight.data.image_inputs import ImageInput


@dataclass(frozen=True)
class StoredImage:
    """An image of the collection as the query, by its id.

    `rows_only` makes the query from stored rows where that is possible: faster, without heat maps, and with the stored
    key points in place of all that a detector finds. Audits use it.
    """

    id: str
    rows_only: bool = False


@dataclass(frozen=True)
class SearchRequest:
    image: "ImageInput | StoredImage | Query"
    k: int = 10  # answers
    box: Box | None = None  # the part of the query to look for, in pixels of the original
    filters: tuple[Filter, ...] = ()  # an answer meets all of them

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InputError("cannot give that many answers", expected="k of 1 or more", actual=f"k = {self.k}")
        if isinstance(self.image, Query) and self.box is not None:
            raise InputError(
                "the query is encoded already", expected="no box", actual=str(self.box), fix="encode the box"
            )

    @classmethod
    def parse(
        cls,
        image: "ImageInput | StoredImage | Query",
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: Near | None = None,
    ) -> "SearchRequest":
        """With filters as the user writes them: conditions such as "year>=1900", and a circle on the map."""
        return cls(image, k, box, parse(where, near))

    def with_query(self, query: Query) -> "SearchRequest":
        """The same request, its image encoded."""
        return replace(self, image=query, box=None)


def parse_box(text: str | None, name: str) -> Box | None:
    """The box that an option or a form field called `name` holds, as "x0,y0,x1,y1"; None where the user gave none."""
    if text is None:
        return None
    x0, y0, x1, y1 = _parse_numbers(text, 4, name, BoxError, "10,20,200,300")
    return x0, y0, x1, y1


def parse_near(text: str | None, name: str) -> Near | None:
    """The circle that an option or a form field called `name` holds, as "latitude,longitude,metres", or None."""
    if text is None:
        return None
    lat, lon, metres = _parse_numbers(text, 3, name, InputError, "48.8584,2.2945,500")
    return lat, lon, metres


def parse_bounds(text: str | None, name: str) -> tuple[float, ...]:
    """The edges of a map in an option called `name`, as "west,south,east,north"; () where the user gave none."""
    return () if text is None else _parse_numbers(text, 4, name, InputError, "-180,-90,180,90")


def _parse_numbers(text: str, count: int, name: str, error: type[InputError], example: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) != count:
        raise error(
            f"cannot read {name} {text!r}",
            expected=f"{count} numbers separated by commas",
            actual=text,
            fix=f"e.g. {name} {example}",
        )
    return numbers
