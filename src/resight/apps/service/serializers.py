"""Answers in JSON that every reader takes: ASCII, and no number that JSON has no word for.

Values of the library → what JSON holds, in the shapes of `shapes.py`.
"""

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from fastapi.responses import JSONResponse

from resight.collection.answer import Answer
from resight.collection.attributes import AttributeSummary
from resight.explain.draw import choose_pairs
from resight.files.remote import to_url
from resight.store import ImageRecord
from resight.types import Attribute, Evidence, FloatArray, Hit, Match, Positions, Query, TokenMatches


class Json(JSONResponse):
    """In ASCII: names of files may hold what no encoding of text can."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


POINTS = 300  # pairs of a match that are sent
Plain = dict[str, Any]
Size = tuple[int, int]


def tell_record(record: ImageRecord, show_path: bool) -> Plain:
    return {
        "id": record.id,
        "path": to_url(record.path) if show_path else None,
        "size": record.size,
        "bytes": record.bytes,
        "sha256": record.sha256,
        "attributes": tell_attributes(record.attributes),
    }


def tell_query(query: Query, thumbnail: bytes | None) -> Plain:
    width, height = query.size
    whole = query.outline == (0, 0, width, height)
    uri = None if thumbnail is None else f"data:image/webp;base64,{base64.b64encode(thumbnail).decode()}"
    return {
        "id": query.id,
        "size": query.size,
        "box": None if whole else query.outline,
        "thumbnail": uri,
        "attributes": tell_attributes(query.attributes),
    }


def tell_answer(answer: Answer, show_path: bool) -> Plain:
    """All of an answer that does not depend on how it was asked for."""
    return {
        "hits": [tell_hit(hit, answer.sizes[hit.id], show_path) for hit in answer.hits],
        "seconds": dict(answer.ranking.seconds),
        "proof": answer.ranking.proof,
        "position": asdict(answer.position) if answer.position else None,
        "stage": answer.stage,
        "why": None,
    }


def tell_hit(hit: Hit, size: Size, show_path: bool) -> Plain:
    return {
        "id": hit.id,
        "path": to_url(hit.path) if show_path else None,
        "score": hit.score,
        "probability": hit.probability,
        "box": _tell_box(hit.box),
        "attributes": tell_attributes(hit.attributes),
        "stages": _tell_numbers(hit.stages),
        "located_by": hit.located_by,
        "size": size,
    }


def explain_hit(answer: Answer, hit: Hit) -> Plain:
    told = tell_evidence(answer.explain(hit), answer.query.size, answer.sizes[hit.id])
    return {**told, "stages": _tell_numbers(hit.stages), "seconds": dict(answer.ranking.seconds)}


def tell_evidence(evidence: Evidence, query_size: Size, image_size: Size) -> Plain:
    """Of a pair of images, however it was found."""
    return {
        "id": evidence.image_id,
        "probability": evidence.probability,
        "box": _tell_box(evidence.box),
        "region": _tell_box(evidence.region),
        "located_by": evidence.located_by,
        "stages": {},
        "seconds": {},
        "match": tell_match(evidence.match) if evidence.match else None,
        "heat": _tell_heat(evidence.heat),
        "query_heat": _tell_heat(evidence.query_heat),
        "pairs": _tell_pairs(evidence.tokens) if evidence.tokens else [],
        "sizes": {"query": query_size, "image": image_size},
    }


def tell_summary(summary: AttributeSummary) -> Plain:
    values = [{"value": _tell_value(value), "count": count} for value, count in summary.values]
    bounds = {} if summary.minimum is None else {"min": summary.minimum, "max": summary.maximum}
    return {"name": summary.name, "kind": summary.kind, "count": summary.count, **bounds, "values": values}


def tell_positions(positions: Positions, most: int) -> Plain:
    headings = [None if math.isnan(heading) else heading for heading in positions.headings[:most].tolist()]
    return {
        "ids": positions.ids[:most],
        "lats": positions.lats[:most].tolist(),
        "lons": positions.lons[:most].tolist(),
        "headings": headings,
        "total": len(positions),
        "cut": len(positions) > most,
    }


def tell_attributes(attributes: Mapping[str, Attribute]) -> Plain:
    return {name: _tell_value(value) for name, value in attributes.items()}


def _tell_value(value: Attribute) -> Attribute:
    """JSON has no NaN and no infinity."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _tell_numbers(numbers: Mapping[str, float]) -> dict[str, float]:
    return {name: float(value) for name, value in numbers.items() if math.isfinite(value)}


def _tell_box(box: tuple[float, ...] | None) -> list[float] | None:
    return None if box is None else [float(side) for side in box]


def tell_match(match: Match) -> Plain:
    step = max(1, math.ceil(len(match.points) / POINTS))  # spread over all, as they come in order of nothing
    points = np.round(match.points[::step].astype(float), 1).tolist()
    return {"model": match.model, "inliers": match.inliers, "tentative": match.tentative, "points": points}


def _tell_heat(heat: FloatArray | None) -> Plain | None:
    if heat is None:
        return None
    grey = np.rint(np.clip(np.nan_to_num(heat), 0, 1) * 255).astype(np.uint8)
    rows, columns = grey.shape
    return {"rows": rows, "columns": columns, "values": base64.b64encode(grey.tobytes()).decode()}


def _tell_pairs(tokens: TokenMatches) -> list[Plain]:
    rows = {(int(query), int(image)): row for row, (query, image) in enumerate(tokens.pairs)}
    return [
        {
            "query": _tell_box(tuple(tokens.query_seeds[query])),
            "image": _tell_box(tuple(tokens.image_seeds[image])),
            "similarity": float(tokens.similarities[rows[query, image]]),
            "support": float(tokens.support[rows[query, image]]),
        }
        for query, image in choose_pairs(tokens).tolist()
    ]
