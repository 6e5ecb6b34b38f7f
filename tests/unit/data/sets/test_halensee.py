from pathlib import Path

import pytest

from resight.data import sets
from resight.errors import ManifestError, RecipeError

HEADER = "file,role,lat,lon,heading_deg"
# A degree of latitude is 111.19 km: 0.0001 of it are 11.1 metres.
ROWS = (
    "query/a.jpg,query,52.5,13.28,247.5",
    "query/b.jpg,query,52.6,13.28,10",
    "database/c.jpg,database,52.5001,13.28,90",
    "database/d.jpg,database,52.5002,13.28,90",
    "database/e.jpg,database,52.5003,13.28,90",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "halensee"
    for row in ROWS:
        path = folder / row.partition(",")[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    write_table(folder, ROWS)
    return folder


def write_table(folder: Path, rows: tuple[str, ...], header: str = HEADER) -> None:
    (folder / "images.csv").write_text("\n".join([header, *rows]))


def test_photos_within_25_metres_are_of_the_same_place(root):
    dataset = sets.build("halensee").load(root)
    assert [ref.id for ref in dataset.database] == ["database/c.jpg", "database/d.jpg", "database/e.jpg"]
    assert dataset.judgements["query/a.jpg"].grades == {"database/c.jpg": 1, "database/d.jpg": 1}
    assert dataset.queries[0].path == root / "query" / "a.jpg"
    assert dataset.queries[0].attributes == {"lat": 52.5, "lon": 13.28, "heading": 247.5}


def test_a_query_without_positives_stays(root):
    dataset = sets.build("halensee").load(root)
    assert [ref.id for ref in dataset.queries] == ["query/a.jpg", "query/b.jpg"]
    assert dataset.judgements["query/b.jpg"].grades == {}


@pytest.mark.parametrize(("metres", "count"), [(11.0, 0), (12.0, 1), (40.0, 3)])
def test_how_near_the_same_place_is_is_a_setting(root, metres, count):
    dataset = sets.build("halensee", metres=metres).load(root)
    assert len(dataset.judgements["query/a.jpg"].grades) == count


def test_cameras_may_have_to_look_the_same_way(root):
    assert len(sets.build("halensee", heading=40.0).load(root).judgements["query/a.jpg"].grades) == 0  # 247.5 and 90
    assert len(sets.build("halensee", heading=158.0).load(root).judgements["query/a.jpg"].grades) == 2
    with pytest.raises(RecipeError):
        sets.build("halensee", heading=181.0)


def test_the_folder_that_holds_several_data_sets_will_do(root):
    assert sets.build("halensee").load(root.parent) == sets.build("halensee").load(root)


def test_a_missing_table_or_photo_is_refused_by_its_name(root):
    (root / "database" / "d.jpg").unlink()
    with pytest.raises(ManifestError, match="line 5: the photo is missing"):
        sets.build("halensee").load(root)
    (root / "images.csv").unlink()
    with pytest.raises(ManifestError, match=r"images\.csv cannot be read"):
        sets.build("halensee").load(root)


@pytest.mark.parametrize(
    "row", ["query/a.jpg,both,52.5,13.28,0", "query/a.jpg,query,x,13.28,0", "query/a.jpg,query,152,13,0", "query/a.jpg"]
)
def test_a_row_that_cannot_be_read_is_refused_with_its_line(root, row):
    write_table(root, (ROWS[0], row))
    with pytest.raises(ManifestError, match="line 3 cannot be read"):
        sets.build("halensee").load(root)


def test_a_table_of_another_form_is_refused(root):
    write_table(root, ROWS, header="path,role,lat,lon,heading")
    with pytest.raises(ManifestError, match="not the table of photos"):
        sets.build("halensee").load(root)


def test_distances_below_0_are_refused():
    with pytest.raises(RecipeError):
        sets.build("halensee", metres=-1.0)


def test_the_real_photos_are_67_queries_in_157(real_data):
    dataset = sets.build("halensee").load(real_data)
    assert (len(dataset.queries), len(dataset.database)) == (67, 157)
    assert sum(bool(judgement.grades) for judgement in dataset.judgements.values()) == 60
