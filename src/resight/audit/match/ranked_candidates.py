"""Rank the entries of one collection for each entry of another: entries in, Candidates out, best first.

Every image of an entry is a query; of the images of a candidate, and of the views of an entry, the best pair counts.
Results are logged entry by entry, so that a stopped run continues.

With `centred`, craters are scored by centred_layout.py; where one lies in a crop follows from the crop's `view`.

Otherwise a search ranks them. It weighs an image against the other candidates (a robust z-score, the mean of their
tokens), which says nothing among the two or three that priors leave. So these are ranked in the company of BACKGROUND
other images, always the same ones, which are then left out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from resight.audit.line_log import LineLog
from resight.audit.match.centred_layout import rank_centred
from resight.audit.match.match_entries import MatchEntry
from resight.collection.view import View
from resight.data.image_files import reason
from resight.errors import BoxError, CollectionError, ImageError, SpaceMismatch
from resight.search.locate_boxes import locate
from resight.search.pipeline import search
from resight.search.request import SearchRequest, StoredImage
from resight.types import Box, IntArray, Query, Ranking, Skipped

BACKGROUND = 100
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Candidate:
    """An entry of the target with its best pair of images."""

    entry: int  # number
    score: float  # the log-odds of the search, or the centred layout of craters
    a: str
    b: str
    box: Box | None = None  # in b
    inliers: int = 0


@dataclass(frozen=True)
class Ranked:
    candidates: tuple[Candidate, ...]  # best first
    skipped: tuple[Skipped, ...] = ()  # images that could not be searched


def rank_candidates(
    source: View,
    entries: Sequence[MatchEntry],
    target: View,
    others: Sequence[MatchEntry],
    count: int,
    *,
    allowed: Sequence[IntArray] | None = None,
    centred: bool = False,
    boxes: bool = True,
    log: LineLog | None = None,
    progress: Progress | None = None,
) -> list[Ranked]:
    """The best `count` of `others` for each of `entries`, by the log-odds of the search, or by the centred layout.

    `allowed` lists the numbers that priors leave.
    """
    owner = {name: number for number, entry in enumerate(others) for name in entry.ids}
    sides = {name: entry.find_side(name) for entry in others for name in entry.ids}
    views = max((len(entry.ids) for entry in others), default=1)
    background = frozenset(_draw(list(owner))) if allowed is not None and not centred else frozenset[str]()
    ranked = [_restore(line) for line in log.lines] if log else []
    for number in range(len(ranked), len(entries)):
        names = None if allowed is None else [name for one in allowed[number].tolist() for name in others[one].ids]
        found = _rank(
            source, entries[number], target, owner, sides, (count * views, names, background), (centred, boxes)
        )
        one = replace(found, candidates=found.candidates[:count])
        ranked.append(one)
        if log:
            log.add(_flatten(one))
        if progress:
            progress(number + 1, len(entries))
    return ranked


def _rank(
    source: View,
    entry: MatchEntry,
    target: View,
    owner: Mapping[str, int],
    others: Mapping[str, float],
    limits: tuple[int, Sequence[str] | None, frozenset[str]],
    wanted: tuple[bool, bool],
) -> Ranked:
    count, names, background = limits
    if not owner or names == []:
        return Ranked(())
    best: dict[int, Candidate] = {}
    skipped: list[Skipped] = []
    for name in entry.ids:
        query = _read_query(source, name)
        if isinstance(query, Skipped):
            skipped.append(query)
            continue
        hits = (
            _centre(query, entry, name, target, others, (count, names))
            if wanted[0]
            else _search(query, target, count, names, background, wanted[1])
        )
        for hit in hits:
            number = owner[hit.b]
            found = replace(hit, entry=number, a=name)
            if number not in best or best[number].score < found.score:
                best[number] = found
    # Of equal scores, which calibrated ones often are, the search's own order tells more than the number of an entry.
    return Ranked(tuple(sorted(best.values(), key=lambda one: -one.score)), tuple(skipped))


def _search(
    query: Query,
    target: View,
    count: int,
    names: Sequence[str] | None,
    background: frozenset[str],
    boxes: bool,
) -> Iterator[Candidate]:
    pipeline = target.pipeline
    if names is None:
        ranking = search(query, pipeline, count, by_tokens=0)
    else:
        company = background.union(names)
        ranking = _keep(search(query, pipeline, len(company), company, by_tokens=0), frozenset(names), count)
    if boxes:
        ranking = locate(query, ranking, pipeline.gallery, by_tokens=len(ranking.ids))
    for name, score in zip(ranking.ids, ranking.scores.tolist(), strict=True):
        inliers = int(ranking.signals.get(name, {}).get("inliers", 0))
        yield Candidate(-1, score, query.id, name, ranking.boxes.get(name), inliers)


def _centre(
    query: Query,
    entry: MatchEntry,
    name: str,
    target: View,
    others: Mapping[str, float],
    limits: tuple[int, Sequence[str] | None],
) -> Iterator[Candidate]:
    count, names = limits
    found = rank_centred(query, entry.find_side(name), target, others, names)[:count]
    sizes = target.sizes([one for one, _ in found])
    for one, score in found:
        yield Candidate(-1, score, query.id, one, _box(others[one], sizes[one]))


def _box(side: float, size: tuple[int, int]) -> Box | None:
    """Around a circle in the middle of a crop that is `side` diameters wide."""
    if not side:
        return None
    (width, height), half = size, min(size) / (2 * side)
    return width / 2 - half, height / 2 - half, width / 2 + half, height / 2 + half


def _keep(ranking: Ranking, names: frozenset[str], count: int) -> Ranking:
    rows = [row for row, name in enumerate(ranking.ids) if name in names][:count]
    return replace(ranking, ids=tuple(ranking.ids[row] for row in rows), scores=ranking.scores[rows])


def _draw(names: Sequence[str]) -> list[str]:
    rows = np.random.default_rng(0).permutation(len(names))[:BACKGROUND]
    return [names[row] for row in rows.tolist()]


def _read_query(source: View, name: str) -> Query | Skipped:
    """The query, or why it cannot be made: its file is unreadable or has changed."""
    try:
        return source.encode_query(SearchRequest(StoredImage(name)))
    except SpaceMismatch:  # concerns all images
        raise
    except (ImageError, BoxError, CollectionError) as error:
        path = next(source.records([name])).path
        problem = error.problem if isinstance(error, CollectionError) else reason(error, path)
        return Skipped(str(path), problem)


def _flatten(ranked: Ranked) -> list[object]:
    return [
        [[one.entry, one.score, one.a, one.b, one.box, one.inliers] for one in ranked.candidates],
        [[one.path, one.reason] for one in ranked.skipped],
    ]


def _restore(line: Sequence[Any]) -> Ranked:
    candidates, skipped = line
    return Ranked(tuple(map(_restore_candidate, candidates)), tuple(Skipped(str(p), str(r)) for p, r in skipped))


def _restore_candidate(row: Sequence[Any]) -> Candidate:
    number, score, a, b, box, inliers = row
    return Candidate(number, score, a, b, tuple(box) if box else None, inliers)
