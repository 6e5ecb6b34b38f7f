import base64
import json
import math
from pathlib import Path

import numpy as np

from resight.apps.service import serializers
from resight.apps.service.jobs.uploads import clean_name
from resight.apps.service.serializers import (
    AsciiJSONResponse,
    serialize_attributes,
    serialize_positions,
    serialize_query,
    serialize_record,
)
from resight.geodesy import Positions
from resight.store import ImageRecord
from resight.types import Match, Query


def test_what_json_cannot_hold_becomes_text() -> None:
    told = serialize_attributes({"a": math.nan, "b": math.inf, "c": 1.5, "d": True, "e": "\udc80"})
    assert told == {"a": "nan", "b": "inf", "c": 1.5, "d": True, "e": "\udc80"}
    assert json.loads(AsciiJSONResponse(told).body) == told


def test_paths_are_told_only_where_that_is_wanted() -> None:
    record = ImageRecord("a", Path("/secret/a.jpg"), "00", 1, 2, (3, 4))
    assert serialize_record(record, show_path=False)["path"] is None
    assert serialize_record(record, show_path=True)["path"] == "/secret/a.jpg"


def test_a_query_has_a_box_only_where_it_is_a_part() -> None:
    assert serialize_query(Query("a", (40, 30), (0, 0, 40, 30), ()), None)["box"] is None
    told = serialize_query(Query("a", (40, 30), (0, 0, 20, 30), ()), b"abc")
    assert told["box"] == (0, 0, 20, 30)
    assert told["thumbnail"] == "data:image/webp;base64,YWJj"


def test_positions_are_cut_and_say_so() -> None:
    positions = Positions(("a", "b"), np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([np.nan, 90.0]))
    told = serialize_positions(positions, 1)
    assert told == {"ids": ("a",), "lats": [1.0], "lons": [3.0], "headings": [None], "total": 2, "cut": True}
    assert serialize_positions(positions, 2)["cut"] is False


def test_a_heat_map_is_bytes_row_by_row() -> None:
    told = serializers._serialize_heat(np.array([[0, 0.5, 1], [np.nan, 2, -1]], np.float32))
    assert told == {"rows": 2, "columns": 3, "values": base64.b64encode(bytes([0, 128, 255, 0, 255, 0])).decode()}


def test_the_points_of_a_large_match_are_thinned_over_all_of_it() -> None:
    points = np.repeat(np.arange(1000, dtype=np.float32)[:, None], 4, axis=1)
    told = serializers.serialize_match(Match("q", "a", 1000, np.eye(3), points, tentative=1200))
    assert len(told["points"]) <= serializers.MAX_POINTS
    assert told["points"][0] == [0, 0, 0, 0]
    assert told["points"][-1][0] > 990
    assert told["inliers"] == 1000


def test_a_clients_file_name_is_made_fit_to_be_shown() -> None:
    assert clean_name("../../etc/pass\x1bwd.jpg") == "passwd.jpg"
    assert clean_name("C:\\photos\\a b.jpg") == "a b.jpg"
    assert [clean_name(name, "upload") for name in ("", "///", "\n")] == ["upload"] * 3
    assert len(clean_name("x" * 5000)) == 120
