from pathlib import Path

import numpy as np
import pytest

from resight.audit.crater_entries import is_of_craters, list_entries, place, to_arc, to_chord
from resight.errors import InputError
from resight.store import ImageRecord

PLACE = {"crater_lat": 10.0, "crater_lon": 20.0, "diameter_km": 30.0, "radius_km": 1000.0}


def record(id: str, **attributes: str | float) -> ImageRecord:
    return ImageRecord(id, Path(id), "", 0, 0, (100, 100), attributes)


def test_crops_of_one_label_are_one_entry():
    records = [
        record("a2", label="a", view="2x", **PLACE),
        record("b", view="3x", **PLACE),  # without a label it is an entry of its own
        record("a3", label="a", view="3x", **PLACE),
    ]
    assert is_of_craters(records)
    assert [(one.label, one.ids) for one in list_entries(records)] == [("a", ("a2", "a3")), ("b", ("b",))]


def test_a_label_at_two_places_is_an_error():
    with pytest.raises(InputError, match="two craters have the label 'a'"):
        list_entries([record("a2", label="a", **PLACE), record("a3", label="a", **{**PLACE, "crater_lat": 11.0})])


def test_a_collection_with_another_image_is_not_one_of_craters():
    assert not is_of_craters([record("a", label="a", **PLACE), record("photo", lat=1.0, lon=2.0)])
    assert not is_of_craters([])
    with pytest.raises(InputError, match="'photo' is not a crop of a crater"):
        list_entries([record("photo", lat=1.0, lon=2.0)])


def test_chords_and_arcs_on_a_globe():
    (first,) = list_entries([record("a", **PLACE)])
    point = place([first.crater])[0]
    assert np.linalg.norm(point) == pytest.approx(1000)
    assert point[2] == pytest.approx(1000 * np.sin(np.radians(10)))
    assert to_chord(1000 * np.pi / 3, 1000) == pytest.approx(1000)  # of a regular hexagon
    assert to_arc(np.array([1000.0, 2000.0]), 1000.0) == pytest.approx([1000 * np.pi / 3, 1000 * np.pi])
