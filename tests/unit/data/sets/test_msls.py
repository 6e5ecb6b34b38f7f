import time
from pathlib import Path

import numpy as np
import pytest
from support.samples import msls as sample

from resight.data import sets
from resight.data.spatial_index import LatLonIndex, PlaneIndex
from resight.errors import ManifestError, RecipeError
from resight.types import Dataset, ImageRef


@pytest.fixture
def root(tmp_path: Path) -> Path:
    sample.write(tmp_path, np.random.default_rng(0))
    return tmp_path


def load(root: Path, **settings: object) -> Dataset:
    return sets.build("msls", **settings).load(root)


def list_numbers(dataset: Dataset, query: str) -> list[int]:
    """The numbers of a query's positives, which are their places along the street, in tens of metres."""
    return [int(id.rpartition("d")[2]) for id in dataset.judgements[query].grades]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_same_place_is_within_25_metres(root):
    dataset = load(root)
    assert list_numbers(dataset, "cph/query/cphq0") == [0, 1, 2, 3, 4]  # 3 m east of 20 m: 20.2 m to both ends
    assert list_numbers(dataset, "cph/query/cphq2") == [9, 10, 11]  # the end of the street
    assert list_numbers(load(root, radius=20.1), "cph/query/cphq0") == [1, 2, 3]
    assert list_numbers(load(root, radius=10.0), "cph/query/cphq2") == [10, 11]  # 10 m exactly counts


def test_cities_are_apart_and_in_the_order_asked_for(root):
    dataset = load(root, cities=["sf", "cph"])
    assert dataset.name == "msls sf, cph"
    assert [ref.attributes["city"] for ref in dataset.database] == ["sf"] * 12 + ["cph"] * 12
    assert all(id.startswith("sf/") for id in dataset.judgements["sf/query/sfq0"].grades)


def test_panoramas_and_queries_without_a_positive_are_left_out_unless_asked_for(root):
    assert [ref.id for ref in load(root, cities=["cph"]).queries] == [f"cph/query/cphq{n}" for n in range(3)]
    kept = load(root, cities=["cph"], panoramas=True, unmatched=True)
    assert [ref.id for ref in kept.queries] == [f"cph/query/cphq{n}" for n in range(5)]
    assert kept.judgements["cph/query/cphq4"].grades == {}


def test_headings_count_around_the_circle_where_they_are_asked_for(root):
    dataset = load(root, heading=40.0)  # the database looks at 10 degrees
    assert list_numbers(dataset, "cph/query/cphq0") == [0, 1, 2, 3, 4]  # 350
    assert "cph/query/cphq1" not in dataset.judgements  # 190
    assert list_numbers(load(root, heading=20.0), "cph/query/cphq0") == [0, 1, 2, 3, 4]
    assert "cph/query/cphq0" not in load(root, heading=19.0).judgements


def test_a_subtask_takes_the_images_that_its_column_marks(root):
    dataset = load(root, subtask="d2n", cities=["cph"])
    assert [ref.id for ref in dataset.queries] == ["cph/query/cphq1"]
    assert dataset.queries[0].attributes["night"] is True
    with pytest.raises(ManifestError, match=r"no image of .* is left"):
        load(root, subtask="s2w")


def test_a_city_without_images_for_the_subtask_is_left_out(root):
    for side in ("query", "database"):
        path = root / "train_val/sf" / side / "subtask_index.csv"
        path.write_text(path.read_text().replace("True", "False"))
        dataset = load(root)
        assert {ref.attributes["city"] for ref in (*dataset.database, *dataset.queries)} == {"cph"}
    with pytest.raises(ManifestError, match="no image of sf is left"):
        load(root, cities=["sf"])


def test_the_subtask_all_is_read_too_but_not_for_training(root):
    edit(root / "train_val/cph/query/subtask_index.csv", "cphq0,True", "cphq0,False")
    assert "cph/query/cphq0" not in load(root, cities=["cph"]).judgements
    assert "cph/query/cphq0" in load(root, cities=["cph"], split="train").judgements
    (root / "train_val/cph/query/subtask_index.csv").unlink()
    assert "cph/query/cphq0" in load(root, cities=["cph"]).judgements


def test_attributes_come_from_all_tables(root):
    ref = load(root, cities=["london"], split="train").queries[1]
    assert ref.path == root / "train_val/london/query/images/londonq1.jpg"
    assert ref.attributes == {
        "city": "london",
        "lat": 50.0001,
        "lon": 12.5,
        "heading": 190.0,
        "night": True,
        "frame": 8,
        "sequence": "walk-query",
        "view": "Forward",
        "captured_at": "2018-05-30",
    }


def test_great_circles_serve_where_there_is_no_easting(root):
    for path in root.rglob("postprocessed.csv"):
        path.unlink()
    # 1e-4 degrees of latitude are 11.12 metres: two either way
    assert list_numbers(load(root), "cph/query/cphq2") == [0, 1, 2, 3, 4]
    assert list_numbers(load(root, radius=11.2), "cph/query/cphq2") == [1, 2, 3]


def test_a_seeded_choice_of_queries(root):
    drawn = {seed: tuple(ref.id for ref in load(root, queries=3, seed=seed).queries) for seed in range(6)}
    assert len(set(drawn.values())) > 1 and all(len(ids) == 3 for ids in drawn.values())
    assert drawn[2] == tuple(ref.id for ref in load(root, queries=3, seed=2).queries)
    assert set(load(root, queries=3).judgements) == set(drawn[0])
    with pytest.raises(RecipeError, match="not 7 queries"):
        load(root, queries=7)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("database/postprocessed.csv", "easting", "x", "no column easting"),
        ("database/postprocessed.csv", "347000.0,6173020.0", "347000.0,north", r"postprocessed\.csv, line 4: northing"),
        ("database/postprocessed.csv", "347000.0,6173020.0", "347000.0", r"postprocessed\.csv, line 4: the row"),
        ("database/postprocessed.csv", "cphd2,", "cphd1,", r"line 4: the key"),
        ("database/postprocessed.csv", "cphd2,", "../d2,", r"line 4: the key"),
        ("database/raw.csv", "cphd2,", "other,", r"line 4: 'cphd2' is not in raw\.csv"),
        ("query/raw.csv", "2018-05-30,True", "2018-05-30,perhaps", r"raw\.csv, line 5: pano"),
        ("query/raw.csv", "50.0001", "95", r"line 3: lat"),
        ("query/subtask_index.csv", "cphq2,", "other,", r"line 4: 'cphq2' is not in subtask_index"),
    ],
)
def test_broken_tables_are_refused_with_their_line(root, file, old, new, message):
    edit(root / "train_val" / "cph" / file, old, new)
    with pytest.raises(ManifestError, match=message):
        load(root)


def test_a_city_that_is_not_there_is_refused(root):
    with pytest.raises(ManifestError, match="miami"):
        load(root, split="test")


@pytest.mark.parametrize("settings", [{"radius": -1.0}, {"heading": 181.0}, {"queries": -1}, {"subtask": "x"}])
def test_settings_without_sense_are_refused(settings):
    with pytest.raises(RecipeError):
        sets.build("msls", **settings)


def test_points_and_places_agree_with_a_look_at_all():
    rng = np.random.default_rng(1)
    east, north = rng.uniform(0, 400, (2, 500))
    points = PlaneIndex.of(east, north)
    for x, y in rng.uniform(-10, 410, (40, 2)):
        assert points.within(x, y, 25).tolist() == np.flatnonzero(np.hypot(east - x, north - y) <= 25).tolist()
    refs = [
        ImageRef(str(row), Path(), attributes={"lat": y / 111_195, "lon": x / 111_195})
        for row, (x, y) in enumerate(zip(east, north, strict=True))
    ]
    near = LatLonIndex.of(refs).within(
        200 / 111_195, 200 / 111_195, 25
    )  # at the equator a degree is 111,195 m either way
    assert set(map(int, near)) == set(np.flatnonzero(np.hypot(east - 200, north - 200) <= 25))


def test_many_images_take_no_matrix():
    rng = np.random.default_rng(2)
    points = PlaneIndex.of(*rng.uniform(0, 20_000, (2, 100_000)))
    start = time.perf_counter()
    found = sum(len(points.within(x, y, 25)) for x, y in rng.uniform(0, 20_000, (2_000, 2)))
    assert 700 < found < 1300  # 100,000 · π 25² / 20,000² · 2,000 = 982
    assert time.perf_counter() - start < 5


def test_a_gallery_is_drawn_from_the_positives_of_the_drawn_queries_first(root):
    # London has 12 images and three queries with 5, 5 and 3 positives; the last three rows of the street are query 2's.
    for seed in range(8):
        dataset = load(root, cities=["london"], split="train", queries=2, gallery=4, seed=seed)
        assert len(dataset.queries) == 2 and len(dataset.database) == 4
        whole = load(root, cities=["london"], split="train")
        positives = [set(whole.judgements[ref.id].grades) for ref in dataset.queries]
        assert {ref.id for ref in dataset.database} <= positives[0] | positives[1]
        for ref, all_of_it in zip(dataset.queries, positives, strict=True):
            kept = set(dataset.judgements[ref.id].grades)
            assert kept == all_of_it & {image.id for image in dataset.database}
            assert len(kept) >= 2  # each adds one of its own in both turns


def test_the_same_seed_draws_the_same_gallery_in_the_order_of_the_database(root):
    drawn = [
        tuple(ref.id for ref in load(root, cities=["cph"], gallery=5, seed=seed).database) for seed in (0, 0, 1, 2)
    ]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) > 1
    order = [ref.id for ref in load(root, cities=["cph"]).database]
    assert list(drawn[0]) == [name for name in order if name in drawn[0]]


def test_a_gallery_beyond_the_positives_takes_other_images(root):
    dataset = load(root, cities=["cph"], gallery=12)
    assert len(dataset.database) == 12
    with pytest.raises(RecipeError, match="fewer than 13 images"):
        load(root, cities=["cph"], gallery=13)


def test_a_list_gives_the_same_images_again(root, tmp_path):
    drawn = load(root, cities=["london"], split="train", queries=2, gallery=4, seed=3)
    file = tmp_path / "london.txt"
    lines = [ref.id for ref in (*drawn.database, *drawn.queries)]
    assert len(lines) == 6 and lines[0].startswith("london/database/") and lines[-1].startswith("london/query/")
    file.write_text("\n".join(lines))
    again = load(root, cities=["london"], split="train", images=str(file))
    assert (again.database, again.queries, again.judgements) == (drawn.database, drawn.queries, drawn.judgements)
    file.write_text(f"# two of them\n\n{lines[0]}\n{lines[-1]}\n")
    few = load(root, cities=["london"], split="train", images=str(file), unmatched=True)
    assert (len(few.database), len(few.queries)) == (1, 1)


def test_a_list_that_does_not_fit_is_refused(root, tmp_path):
    file = tmp_path / "list.txt"
    with pytest.raises(ManifestError, match="cannot be read"):
        load(root, images=str(file))
    file.write_text("london/query/londonq0\nnowhere\n")
    with pytest.raises(ManifestError, match="2 ids of the list"):
        load(root, cities=["cph"], images=str(file))
    with pytest.raises(RecipeError, match="chosen twice"):
        load(root, images=str(file), queries=2)
