from pathlib import Path

import pytest

from resight.data import sets
from resight.errors import ManifestError


def write(folder: Path, *rows: str) -> Path:
    path = folder / "manifest.csv"
    path.write_text("\n".join(["path,role,lat,lon,heading", *rows]))
    return path


def test_a_latitude_that_can_only_be_a_longitude_is_said(tmp_path):
    path = write(tmp_path, "a.jpg,database,151.2,-33.8,")
    with pytest.raises(ManifestError, match="lat and lon look swapped: lon is -33"):
        sets.build("manifest").load(path)


@pytest.mark.parametrize("row", ["a.jpg,database,200,-33.8,", "a.jpg,database,95,120,", "a.jpg,database,x,1,"])
def test_other_mistakes_are_not_called_swapped(tmp_path, row):
    with pytest.raises(ManifestError) as caught:
        sets.build("manifest").load(write(tmp_path, row))
    assert "swapped" not in str(caught.value)


def test_queries_that_fit_only_the_other_way_round_are_refused(tmp_path):
    path = write(tmp_path, "a.jpg,database,52.5,13.3,", "b.jpg,query,13.3,52.5,", "c.jpg,query,13.3001,52.5,")
    with pytest.raises(ManifestError, match="look swapped") as caught:
        sets.build("manifest").load(path)
    assert "2 of 2 are within 1 km" in str(caught.value)


@pytest.mark.parametrize(
    "queries",
    [
        ("b.jpg,query,52.5,13.3,",),  # in place
        ("b.jpg,query,13.3,52.5,", "c.jpg,query,52.6,13.3,"),  # one of them is in place
        ("b.jpg,query,40.0,-3.7,",),  # elsewhere, whichever way round
        ("b.jpg,query,,,",),
    ],
)
def test_queries_are_left_alone_where_nothing_is_certain(tmp_path, queries):
    dataset = sets.build("manifest").load(write(tmp_path, "a.jpg,database,52.5,13.3,", *queries))
    assert len(dataset.queries) == len(queries)


def test_headings_of_a_manifest_count_where_they_are_asked_for(tmp_path):
    path = write(
        tmp_path,
        "a.jpg,database,52.5,13.3,350",
        "b.jpg,database,52.5,13.3,100",
        "c.jpg,database,52.5,13.3,",
        "q.jpg,query,52.5,13.3,20",
    )
    assert set(sets.build("manifest").load(path).judgements["q.jpg"].grades) == {"a.jpg", "b.jpg", "c.jpg"}
    assert set(sets.build("manifest", heading=40.0).load(path).judgements["q.jpg"].grades) == {"a.jpg"}
