"""The craters of a collection: one row each, the largest first."""

from resight.collection.crater_positions import gather_craters


def crop(label, lat, lon, diameter, view="3x", **more):
    facts = {"label": label, "crater_lat": lat, "crater_lon": lon, "diameter_km": diameter, "view": view}
    return {**facts, **more}


def test_crops_of_one_crater_are_one_row_and_the_largest_comes_first():
    found = gather_craters(
        [
            ("small", crop("7", -10.0, 350.0, 12.0)),
            ("wide", crop("8", 5.0, 20.0, 90.0)),
            ("close", crop("8", 5.0, 20.0, 90.0, view="2x")),
            ("photo", {"lat": 1.0, "lon": 2.0}),
            ("unknown", crop("9", 95.0, 0.0, 10.0)),
        ]
    )
    assert (found.labels, found.images) == (("8", "7"), (("wide", "close"), ("small",)))
    assert found.lons.tolist() == [20.0, 350.0]
    assert found.diameters_km.tolist() == [90.0, 12.0]
    assert found.radius_km == 1737.4


def test_the_globe_is_that_of_most_crops():
    found = gather_craters([(str(k), crop(str(k), 0.0, float(k), 5.0, radius_km=3389.5)) for k in range(3)])
    assert (len(found), found.radius_km) == (3, 3389.5)


def test_no_craters():
    assert len(gather_craters([("photo", {"lat": 1.0})])) == 0
