"""Answers given under load against the library's, each at the version of the collection that it was given for.

The library's view of an old version gets indexes of its own, built whole in an empty folder: nothing that the server
has put together from parts is used.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import lance

from resight.collection import open_collection
from resight.collection.encode import Encoding
from resight.collection.indexes import IndexCache
from resight.collection.view import View
from resight.data.image_files import read_bytes
from resight.search.request import SearchRequest
from resight.store._files import FileChecks
from resight.store._history import History
from resight.store._snapshot import locate_table, take_snapshot
from service_parts.answers import is_same
from service_parts.arrivals import Asked

VERSIONS, EACH = 8, 6


def count_equal(folder: Path, queries: Sequence[tuple[str, bytes]], asked: Sequence[Asked]) -> tuple[int, int]:
    """How many of the answers that were compared are the library's, and how many were compared."""
    opened = open_collection(folder, must_exist=True)
    encoding = Encoding(opened.recipe.branches, opened.metadata.spaces, None, str(folder))
    answered = [one for one in asked if one.status == 200]
    found = sorted({one.answer["version"] for one in answered})
    equal = compared = 0
    for version in found[:: max(1, len(found) // VERSIONS)][:VERSIONS]:
        with tempfile.TemporaryDirectory() as scratch:
            indexes = IndexCache(Path(scratch), opened.metadata.spaces)
            table = lance.dataset(locate_table(folder), version=version)
            reader = take_snapshot(folder, table, History(folder), FileChecks(folder))
            view = View(reader, opened.recipe, encoding, indexes, folder / "calibration.json")
            for one in [one for one in answered if one.answer["version"] == version][:EACH]:
                name, data = queries[one.query]
                hits = view.ask(SearchRequest(read_bytes(data, name, encoding.query_side))).hits
                compared += 1
                equal += is_same(one.answer["hits"], hits)
    return equal, compared
