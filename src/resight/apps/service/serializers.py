"""The library's values → JSON objects in the shapes of `schemas`, and the response class that writes them.

The JSON is ASCII without NaN or infinity, so that every reader accepts it.
"""

import base64
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from fastapi.responses import JSONResponse

from resight.collection.answer import Answer
from resight.collection.attributes import AttributeSummary
from resight.collection.crater_positions import CraterPositions
from resight.explain.draw import choose_pairs
from resight.files.remote import to_url
from resight.geodesy import Positions
from resight.store import ImageRecord
from resight.types import Attribute, Evidence, FloatArray, Hit, Match, Query, TokenMatches

MAX_POINTS = 300  # matched point pairs per response
JsonObject = dict[str, Any]
Size = tuple[int, int]


class AsciiJSONResponse(JSONResponse):
    """In ASCII: file names may contain characters that no text encoding can represent."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def serialize_record(record: ImageRecord, show_path: bool) -> JsonObject:
    return {
        "id": record.id,
        "path": to_url(record.path) if show_path else None,
        "size": record.size,
        "bytes": record.bytes,
        "sha256": record.sha256,
        "attributes": serialize_attributes(record.attributes),
    }


def serialize_query(query: Query, thumbnail: bytes | None) -> JsonObject:
    width, height = query.size
    whole = query.outline == (0, 0, width, height)
    uri = None if thumbnail is None else f"data:image/webp;base64,{base64.b64encode(thumbnail).decode()}"
    return {
        "id": query.id,
        "size": query.size,
        "box": None if whole else query.outline,
        "thumbnail": uri,
        "attributes": serialize_attributes(query.attributes),
    }


def serialize_answer(answer: Answer, show_path: bool) -> JsonObject:
    """The part of an answer that does not depend on the form of the request."""
    return {
        "hits": [serialize_hit(hit, answer.sizes[hit.id], show_path) for hit in answer.hits],
        "seconds": dict(answer.ranking.seconds),
        "proof": answer.ranking.proof,
        "position": asdict(answer.position) if answer.position else None,
        "stage": answer.stage,
        "why": None,
    }


def serialize_hit(hit: Hit, size: Size, show_path: bool) -> JsonObject:
    return {
        "id": hit.id,
        "path": to_url(hit.path) if show_path else None,
        "score": hit.score,
        "probability": hit.probability,
        "box": _serialize_box(hit.box),
        "attributes": serialize_attributes(hit.attributes),
        "stages": _serialize_numbers(hit.stages),
        "located_by": hit.located_by,
        "other_boxes": [_serialize_box(box) for box in hit.other_boxes],
        "size": size,
    }


def serialize_explanation(answer: Answer, hit: Hit) -> JsonObject:
    evidence = serialize_evidence(answer.explain(hit), answer.query.size, answer.sizes[hit.id])
    return {**evidence, "stages": _serialize_numbers(hit.stages), "seconds": dict(answer.ranking.seconds)}


def serialize_evidence(evidence: Evidence, query_size: Size, image_size: Size) -> JsonObject:
    """Of a pair of images, from a search or a review."""
    return {
        "id": evidence.image_id,
        "probability": evidence.probability,
        "box": _serialize_box(evidence.box),
        "region": _serialize_box(evidence.region),
        "located_by": evidence.located_by,
        "stages": {},
        "seconds": {},
        "match": serialize_match(evidence.match) if evidence.match else None,
        "heat": _serialize_heat(evidence.heat),
        "query_heat": _serialize_heat(evidence.query_heat),
        "pairs": _serialize_pairs(evidence.tokens) if evidence.tokens else [],
        "sizes": {"query": query_size, "image": image_size},
    }


def serialize_summary(summary: AttributeSummary) -> JsonObject:
    values = [{"value": _serialize_value(value), "count": count} for value, count in summary.values]
    bounds = {} if summary.minimum is None else {"min": summary.minimum, "max": summary.maximum}
    return {"name": summary.name, "kind": summary.kind, "count": summary.count, **bounds, "values": values}


def serialize_positions(positions: Positions, limit: int) -> JsonObject:
    headings = [None if math.isnan(heading) else heading for heading in positions.headings[:limit].tolist()]
    return {
        "ids": positions.ids[:limit],
        "lats": positions.lats[:limit].tolist(),
        "lons": positions.lons[:limit].tolist(),
        "headings": headings,
        "total": len(positions),
        "cut": len(positions) > limit,
    }


def serialize_craters(craters: CraterPositions, limit: int, edges: Sequence[float]) -> JsonObject:
    """`edges` of the mosaic: west, south, east, north; none without a mosaic."""
    return {
        "images": craters.images[:limit],
        "labels": craters.labels[:limit],
        "lats": craters.lats[:limit].tolist(),
        "lons": craters.lons[:limit].tolist(),
        "diameters_km": craters.diameters_km[:limit].tolist(),
        "radius_km": craters.radius_km,
        "total": len(craters),
        "cut": len(craters) > limit,
        "mosaic": dict(zip(("west", "south", "east", "north"), edges, strict=True)) if edges else None,
    }


def serialize_attributes(attributes: Mapping[str, Attribute]) -> JsonObject:
    return {name: _serialize_value(value) for name, value in attributes.items()}


def _serialize_value(value: Attribute) -> Attribute:
    """JSON has neither NaN nor infinity: these become text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _serialize_numbers(numbers: Mapping[str, float]) -> dict[str, float]:
    return {name: float(value) for name, value in numbers.items() if math.isfinite(value)}


def _serialize_box(box: tuple[float, ...] | None) -> list[float] | None:
    return None if box is None else [float(side) for side in box]


def serialize_match(match: Match) -> JsonObject:
    step = max(1, math.ceil(len(match.points) / MAX_POINTS))  # an even sample: the points are in no order
    points = np.round(match.points[::step].astype(float), 1).tolist()
    return {
        "model": match.model,
        "inliers": match.inliers,
        "tentative": match.tentative,
        "significance": min(float(match.significance), sys.float_info.max),
        "transform": match.transform.astype(float).tolist(),
        "points": points,
    }


def _serialize_heat(heat: FloatArray | None) -> JsonObject | None:
    if heat is None:
        return None
    grey = np.rint(np.clip(np.nan_to_num(heat), 0, 1) * 255).astype(np.uint8)
    rows, columns = grey.shape
    return {"rows": rows, "columns": columns, "values": base64.b64encode(grey.tobytes()).decode()}


def _serialize_pairs(tokens: TokenMatches) -> list[JsonObject]:
    rows = {(int(query), int(image)): row for row, (query, image) in enumerate(tokens.pairs)}
    return [
        {
            "query": _serialize_box(tuple(tokens.query_seeds[query])),
            "image": _serialize_box(tuple(tokens.image_seeds[image])),
            "similarity": float(tokens.similarities[rows[query, image]]),
            "support": float(tokens.support[rows[query, image]]),
        }
        for query, image in choose_pairs(tokens).tolist()
    ]
