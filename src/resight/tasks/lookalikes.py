"""`resight.lookalikes(...)`: similar but different objects. `resight lookalikes` calls it too."""

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from resight.audit.likeness.find_lookalikes import By, Lookalikes, find_lookalikes
from resight.collection import Collection
from resight.errors import InputError
from resight.files.atomic import write_atomic
from resight.progress import OpenBar, open_bar
from resight.tasks import check_number, open_existing


def lookalikes(
    collection: Collection | str | Path,
    image: str | Path,
    k: int = 10,
    *,
    by: By = "auto",
    where: Sequence[str] = (),
    diversity: float = 0.3,
    html: str | Path | None = None,
    progress: bool | OpenBar = True,
) -> Lookalikes:
    """Find similar but different objects: the nearest images that do not show the very same object.

    Args:
        collection: The collection, or its path.
        image: The image to compare with: a file, or an id of the collection.
        k: The number of answers.
        by: "form": the form of craters; "vectors": stored vectors; "auto": form for crops of craters.
        where: Conditions on attributes, such as "diameter_km>20".
        diversity: 0: the most similar; towards 1: more different from each other.
        html: Write a contact sheet of the answers.
        progress: Show a bar in a notebook; False: none.

    Returns:
        The answers, most similar first.

    Raises:
        ImageError: The image cannot be decoded.
        InputError: The images cannot be compared in this way, or a condition cannot be read.

    Examples:
        >>> import resight
        >>> found = resight.lookalikes("photos.resight", "eiffel-2.png", k=3)
        >>> found.by, len(found.found), "eiffel-2.png" in [one.id for one in found.found]
        ('vectors', 3, False)
    """
    check_number("k", k, 1, whole=True)
    check_number("diversity", diversity, 0, 1)
    if by not in get_args(By):
        raise InputError(
            "no such way to compare", expected=", ".join(get_args(By)), actual=repr(by), fix="correct `by`"
        )
    opened = open_existing(collection)
    with open_bar(progress, "comparing") as bar:
        result = find_lookalikes(opened, image, k, by=by, where=where, diversity=diversity, progress=bar)
    if html:
        from resight.audit.likeness.lookalikes_page import render

        with write_atomic(Path(html)) as temporary:
            temporary.write_text(render(result, opened), encoding="utf-8", errors="backslashreplace")
    return result
