"""A condition in the words of `qdrant_client.models` → the same in those of Qdrant Edge.

Edge reads a truth as the number 1 or 0, which matches no truth that is stored: none is ever asked for.
"""

from typing import Any

import qdrant_edge as edge
from qdrant_client import models


def convert_condition(condition: Any) -> Any:
    """A Filter, or one condition of it."""
    match condition:
        case models.Filter():
            must, should, must_not = (
                [convert_condition(part) for part in parts] if parts else None
                for parts in (condition.must, condition.should, condition.must_not)
            )
            return edge.Filter(must, should, must_not)
        case models.HasIdCondition():
            return edge.HasIdCondition(set(condition.has_id))
        case models.IsEmptyCondition():
            return edge.IsEmptyCondition(condition.is_empty.key)
        case models.FieldCondition(key=key, match=models.MatchValue(value=value)):
            return edge.FieldCondition(key, match=edge.MatchValue(value))
        case models.FieldCondition(key=key, range=models.Range() as span):
            return edge.FieldCondition(key, range=edge.RangeFloat(span.gte, span.gt, span.lte, span.lt))
        case models.FieldCondition(key=key, geo_radius=models.GeoRadius() as circle):
            centre = edge.GeoPoint(circle.center.lon, circle.center.lat)
            return edge.FieldCondition(key, geo_radius=edge.GeoRadius(centre, circle.radius))
    raise TypeError(f"{type(condition).__name__} is not a condition that is asked for")
