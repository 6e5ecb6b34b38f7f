"""Where the instance is in each answer, as a box clipped to the image; and which tokens matched which.

`locate` takes, in this order: the query's outline through a verified homography or similarity; the box around the
matched points of a fundamental matrix, which maps points to lines; the region that won, or what `patch_refine` made of
it; the area that the tokens support best. `located_by` names it: "homography", "similarity", "points", "region" or
"tokens".

    pair       a query token q_i and its nearest image token x_j(i), j(i) = argmax_j ⟨q_i, x_j⟩
    support    s_i = max_j ⟨q_i, x_j⟩ − median_j ⟨q_i, x_j⟩: similarities of learnt tokens are all high, so that it
               counts how far the best lies above the usual one of the same image
    heat       a token's support on its own patch; an image token has the best of the query tokens that chose it
    area       the rectangle with the largest Σ (votes − FLOOR · mean votes); the votes of an image token are the summed
               support of the query tokens that chose it. It grows over many matched parts, and stops where they are few
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from resight.errors import RecipeError
from resight.search.gallery import Gallery
from resight.search.homography_checks import box_outline
from resight.types import Box, Descriptors, FloatArray, Match, Query, Ranking, TokenMatches

BY_TOKENS = 30
DECIMALS = 3  # of a pixel: the last bits of a fitted transform depend on where its points lie in memory
FLOOR = 0.35  # chosen on photographs of paintings with known boxes; 0.2 to 0.4 differ by at most 0.03 in mean overlap


def locate(query: Query, ranking: Ranking, gallery: Gallery, by_tokens: int = BY_TOKENS) -> Ranking:
    """The first `by_tokens` answers may get a box from their tokens, which are read for it.

    An answer that was found at another rotation is located by the query at that rotation.
    """
    if query.turned is not None:
        turned = {name: degrees for name in ranking.ids if (degrees := ranking.signals.get(name, {}).get("rotation"))}
        for other in query.turned() if turned else ():
            names = tuple(name for name in ranking.ids[:by_tokens] if turned.get(name) == other.rotation)
            found = locate(other, replace(ranking, ids=names), gallery, len(names)) if names else ranking
            ranking = _take_boxes(ranking, found)
        by_tokens = len(ranking.ids[:by_tokens])
        upright = replace(ranking, ids=tuple(name for name in ranking.ids[:by_tokens] if name not in turned))
        found = locate(replace(query, turned=None), upright, gallery, by_tokens)
        return _take_boxes(ranking, found)
    branch = find_token_branch(query)
    matched = [name for name in ranking.ids if name in ranking.matches]
    rest = [name for name in ranking.ids[:by_tokens] if branch is not None and name not in ranking.boxes]
    known = gallery.sizes(list(dict.fromkeys([*matched, *rest])))
    boxes: dict[str, Box] = {}
    origins: dict[str, str] = {}
    others: dict[str, tuple[Box, ...]] = {}
    for name in filter(known.__contains__, matched):
        match = ranking.matches[name]
        if (box := find_box(match, query.outline, known[name])) is not None:
            boxes[name] = box
            origins[name] = "points" if match.model == "fundamental" else match.model
        if match.others:
            further = (find_box(other, query.outline, known[name]) for other in match.others)
            others[name] = tuple(box for box in further if box is not None)
    left = [name for name in rest if name in known and name not in boxes]
    if branch is not None and left:
        for image in split(gallery.descriptors(branch, left)):
            tokens = match_tokens(query.descriptors[branch], image)
            if tokens and (box := find_supported_box(tokens, known[tokens.image_id])) is not None:
                boxes[tokens.image_id] = box
                origins[tokens.image_id] = "tokens"
    return replace(
        ranking,
        boxes={**ranking.boxes, **boxes},
        located_by={**ranking.located_by, **origins},
        other_boxes={**ranking.other_boxes, **others},
    )


def _take_boxes(ranking: Ranking, found: Ranking) -> Ranking:
    return replace(ranking, boxes=found.boxes, located_by=found.located_by, other_boxes=found.other_boxes)


def find_box(match: Match, outline: Box, size: tuple[int, int]) -> Box | None:
    """The box in the image; None if it lies outside."""
    sides = np.array(box_outline(match, outline)).reshape(2, 2)
    low, high = (np.clip(np.round(side, DECIMALS), 0, size) for side in sides)
    if not (high > low).all():
        return None
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])


def match_tokens(query: Descriptors, image: Descriptors) -> TokenMatches | None:
    """The pairs of two single images; None if one of them has no tokens."""
    if not len(query) or not len(image):
        return None
    query_boxes, image_boxes = require_boxes(query), require_boxes(image)
    similarities = np.asarray(query.vectors @ image.vectors.T, np.float32)
    best = similarities.argmax(axis=1)
    highest = similarities.max(axis=1)
    return TokenMatches(
        query.ids[0],
        image.ids[0],
        pairs=np.stack([np.arange(len(best)), best], axis=1).astype(np.int64),
        similarities=highest,
        support=highest - np.median(similarities, axis=1),
        query_boxes=query_boxes,
        query_seeds=query_boxes if query.seeds is None else query.seeds,
        image_boxes=image_boxes,
        image_seeds=image_boxes if image.seeds is None else image.seeds,
    )


def heat_query(matches: TokenMatches, size: tuple[int, int]) -> FloatArray:
    """How well each part of a query of `size` (width, height) is matched: [h, w], 1 for the best part."""
    return _normalise(spread(matches.support, matches.query_seeds, size))


def heat_image(matches: TokenMatches, size: tuple[int, int]) -> FloatArray:
    """How well each part of an image of `size` matches the query: [h, w], 1 for the best part."""
    best = np.zeros(len(matches.image_seeds), np.float32)
    np.maximum.at(best, matches.pairs[:, 1], matches.support)
    return _normalise(spread(best, matches.image_seeds, size))


def find_supported_box(matches: TokenMatches, size: tuple[int, int]) -> Box | None:
    """The box of the best-supported area of an image of `size`; None without any support."""
    votes = np.bincount(matches.pairs[:, 1], matches.support, minlength=len(matches.image_seeds))
    return find_densest(spread(votes.astype(np.float32), matches.image_seeds, size), size)


def find_supported_part(matches: TokenMatches) -> Box | None:
    """`find_supported_box` for tokens of a region, tiled with patches: a box inside it."""
    (left, top), (right, bottom) = matches.image_seeds[:, :2].min(axis=0), matches.image_seeds[:, 2:].max(axis=0)
    inside = replace(matches, image_seeds=matches.image_seeds - np.array([left, top, left, top], np.float32))
    box = find_supported_box(inside, (round(float(right - left)), round(float(bottom - top))))
    if box is None:
        return None
    x0, y0, x1, y1 = box
    return x0 + float(left), y0 + float(top), x1 + float(left), y1 + float(top)


def spread(weights: FloatArray, boxes: FloatArray, size: tuple[int, int]) -> FloatArray:
    """Weights [n] of boxes [n, 4] as a map [h, w] over an image of `size`, with cells as large as the boxes.

    Cells share a weight by the area that its box has in them.
    """
    sides = np.median(boxes[:, 2:] - boxes[:, :2], axis=0)
    columns, rows = np.maximum(np.rint(np.array(size) / np.maximum(sides, 1e-6)), 1).astype(int)
    across = _overlap(boxes[:, [0, 2]], columns, size[0])
    down = _overlap(boxes[:, [1, 3]], rows, size[1])
    return np.asarray(down.T @ (weights[:, None] * across), np.float32)


def find_densest(votes: FloatArray, size: tuple[int, int]) -> Box | None:
    """The rectangle of a map [h, w] over an image of `size` with the largest sum above the floor."""
    if not votes.max() > 0:
        return None
    rows, columns = votes.shape
    gains = np.pad(votes - FLOOR * votes.mean(dtype=np.float64), ((1, 0), (1, 0)))
    sums = gains.cumsum(axis=0).cumsum(axis=1)
    # A map has few cells, so that every rectangle can be tried: [spans down, spans across].
    top, bottom = np.triu_indices(rows + 1, 1)
    left, right = np.triu_indices(columns + 1, 1)
    bands = sums[bottom] - sums[top]
    down, across = divmod(int((bands[:, right] - bands[:, left]).argmax()), len(left))
    x, y = size[0] / columns, size[1] / rows
    return float(left[across] * x), float(top[down] * y), float(right[across] * x), float(bottom[down] * y)


def split(chunks: Iterator[Descriptors]) -> Iterator[Descriptors]:
    """Rows of many images, image by image."""
    for chunk in chunks:
        for owner, name in enumerate(chunk.ids):
            rows = slice(*np.searchsorted(chunk.owners, (owner, owner + 1)))
            yield Descriptors(
                (name,),
                chunk.vectors[rows],
                np.zeros(len(chunk.vectors[rows]), np.int32),
                boxes=None if chunk.boxes is None else chunk.boxes[rows],
                seeds=None if chunk.seeds is None else chunk.seeds[rows],
                space=chunk.space,
            )


def find_token_branch(query: Query) -> int | None:
    """The first branch with boxes and without key points: those of tokens."""
    return next((branch for branch, rows in enumerate(query.descriptors) if has_tokens(rows)), None)


def has_tokens(rows: Descriptors) -> bool:
    return rows.boxes is not None and rows.points is None


def require_token_branch(query: Query, wanted: int | None = None) -> int:
    """The branch `wanted`, or else the first with tokens."""
    branch = find_token_branch(query) if wanted is None else wanted
    if branch is None or branch >= len(query.descriptors) or not has_tokens(query.descriptors[branch]):
        raise RecipeError(
            "late interaction needs tokens",
            expected='a branch with the descriptor "aggregated" or "tokens"',
            actual=f"{len(query.descriptors)} branches, none with tokens" if wanted is None else f"branch {wanted}",
            fix="add such a branch with weight = 0, or remove the reranker",
        )
    return branch


def require_boxes(rows: Descriptors) -> FloatArray:
    assert rows.boxes is not None, "a token branch is one with boxes"
    return rows.boxes


def _normalise(support: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(support, 0) / max(float(support.max()), 1e-12), np.float32)


def _overlap(spans: FloatArray, cells: int, length: int) -> FloatArray:
    """The share [n, cells] of each span [n, 2] that lies in each of the equal cells of a side."""
    edges = np.linspace(0, length, cells + 1)
    inside = np.diff(np.clip(edges[None], spans[:, :1], spans[:, 1:]), axis=1)
    return np.asarray(inside / np.maximum(spans[:, 1:] - spans[:, :1], 1e-6), np.float32)
