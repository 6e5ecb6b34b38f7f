"""Measure a collection as it is on queries with known truth: a Collection and the truth in, a RunResult out.

The queries of a data set are images; those of a plain truth ({query: ids}, a frame, qrels) are paths, or ids of stored
images, which then do not count as answers to themselves. All images of the collection are searched. A positive that
the collection lacks is not found if a data set lists it, and an error if a plain truth names it.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from resight.collection import Collection
from resight.collection.add import Progress
from resight.errors import InputError
from resight.evaluate.given_runs import METRICS, find_dataset, read_truth
from resight.evaluate.measure import EncodedDataset, Extras, SearchVariant, measure
from resight.evaluate.results import RunResult, add_positions
from resight.store import ImageRecord
from resight.types import Dataset, ImageRef, Judgement

SHOWN = 3  # ids in a message


def measure_collection(
    collection: Collection,
    data: Any,
    *,
    metrics: Sequence[str] = (),
    by: str = "set",
    progress: Progress | None = None,
    extras: Extras | None = None,
) -> RunResult:
    """Metrics: those given, else those of the collection's recipe, else METRICS."""
    view = collection.view()
    records = list(view.records())
    given = find_dataset(data)
    dataset = _match(given, records) if given else _make(collection, read_truth(data), records)
    recipe = replace(collection.recipe, metrics=tuple(metrics) or collection.recipe.metrics or METRICS)
    known = {record.id for record in records}
    absent = tuple(ref.id for ref in given.database if ref.id not in known) if given else ()
    encoded = EncodedDataset(collection, dataset, absent, 0.0)
    (result,) = measure(encoded, [SearchVariant(recipe, view.pipeline)], by, progress, extras)
    return add_positions(result, dataset)


def _match(dataset: Dataset, records: Sequence[ImageRecord]) -> Dataset:
    """The data set with the collection's images as its database: the same by id, or else by file."""
    known, by_path = {record.id for record in records}, {record.path.absolute(): record.id for record in records}
    renamed = {
        ref.id: by_path[path]
        for ref in dataset.database
        if ref.id not in known and (path := ref.path.absolute()) in by_path
    }
    if dataset.database and not renamed and not any(ref.id in known for ref in dataset.database):
        raise InputError(
            f"the collection holds no image of {dataset.name}",
            expected=f"its {len(dataset.database):,} database images, by id or by file",
            actual=f"{len(records):,} others, e.g. {records[0].id!r}" if records else "an empty collection",
            fix="add them, or evaluate another collection",
        )
    judgements = {query: _rename(judged, renamed) for query, judged in dataset.judgements.items()}
    return replace(dataset, database=tuple(record.ref for record in records), judgements=judgements)


def _rename(judged: Judgement, names: Mapping[str, str]) -> Judgement:
    return Judgement(
        {names.get(id, id): grade for id, grade in judged.grades.items()},
        frozenset(names.get(id, id) for id in judged.ignored),
        {names.get(id, id): box for id, box in judged.boxes.items()},
    )


def _make(collection: Collection, truth: Mapping[str, Judgement], records: Sequence[ImageRecord]) -> Dataset:
    """A data set of a plain truth."""
    stored = {record.id: record for record in records}
    unknown = sorted({id for judged in truth.values() for id in (*judged.grades, *judged.ignored)} - stored.keys())
    if unknown:
        raise InputError(
            f"the truth names {len(unknown):,} images that the collection lacks",
            expected=f"ids of {collection.path}, e.g. {next(iter(stored), '')!r}",
            actual=", ".join(map(repr, unknown[:SHOWN])) + (" …" if len(unknown) > SHOWN else ""),
            fix="correct the ids; `for id in collection` lists them",
        )
    queries, judgements = [], {}
    for name, judged in truth.items():
        own = stored.get(name) if not os.path.isfile(name) else None  # noqa: PTH113 - a text need not be a path
        queries.append(ImageRef(name, Path(name)) if own is None else own.ref)
        judgements[name] = judged if own is None else replace(judged, ignored=judged.ignored | {name})
    refs = tuple(record.ref for record in records)
    return Dataset(collection.path.name, refs, tuple(queries), judgements)
