"""Hits as a list that shows itself in a notebook, and as a data frame: Hits in, HTML and frames out."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from resight.errors import ResightError
from resight.frames import make_frame
from resight.types import Hit

SIDES = ("x0", "y0", "x1", "y1")


class Hits(list[Hit]):
    """The hits of one search, best first: a list that a notebook shows as pictures."""

    def to_frame(self) -> Any:
        """Convert to a data frame of pandas, or of polars if only that is installed.

        Returns:
            One row per hit, with the columns of `Answer.to_frame`.
        """
        return frame_hits(self)

    def _repr_html_(self) -> str:
        return "".join(filter(None, (hit._repr_html_() for hit in self))) or "<div>no hits</div>"


def list_alone(answer: Any) -> Any:
    """The hits of an Answer without what explains them: a batch of any length fits into memory. An error stays."""
    return answer if isinstance(answer, ResightError) else Hits(replace(hit, drawer=None) for hit in answer)


def frame_hits(hits: Sequence[Hit]) -> Any:
    """One row per hit; an attribute that has the name of another column is called attribute_NAME."""
    columns: dict[str, list[Any]] = {
        "rank": list(range(1, len(hits) + 1)),
        "id": [hit.id for hit in hits],
        "probability": [hit.probability for hit in hits],
        "score": [hit.score for hit in hits],
    }
    for number, side in enumerate(SIDES):
        columns[side] = [None if hit.box is None else hit.box[number] for hit in hits]
    columns["located_by"] = [hit.located_by for hit in hits]
    columns["path"] = [str(hit.path) for hit in hits]
    for name in _list_attributes(hits):
        title = f"attribute_{name}" if name in columns else name
        columns[title] = [hit.attributes.get(name) for hit in hits]
    return make_frame(columns)


def _list_attributes(hits: Iterable[Hit]) -> list[str]:
    return list(dict.fromkeys(name for hit in hits for name in hit.attributes))
