"""The images of a collection in the order of their ids, a page at a time. The last lists asked for are kept."""

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence

from resight.collection.view import Near, View

KEPT = 8


class Listing:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lists: OrderedDict[tuple[object, ...], list[str]] = OrderedDict()

    def page(
        self, view: View, where: Sequence[str], near: Near | None, after: str | None, limit: int
    ) -> tuple[list[str], str | None, int]:
        """Ids of a page, the id that the next one comes after, and how many there are in all."""
        ids = self._find(view, tuple(where), near)
        begin = bisect_right(ids, after) if after is not None else 0
        chosen = ids[begin : begin + limit]
        return chosen, chosen[-1] if begin + limit < len(ids) else None, len(ids)

    def _find(self, view: View, where: tuple[str, ...], near: Near | None) -> list[str]:
        key = view.version, where, near
        with self._lock:
            if key in self._lists:
                self._lists.move_to_end(key)
                return self._lists[key]
        ids = sorted(view.choose(where, near))
        with self._lock:
            self._lists[key] = ids
            while len(self._lists) > KEPT:
                self._lists.popitem(last=False)
        return ids
