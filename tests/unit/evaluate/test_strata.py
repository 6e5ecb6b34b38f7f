"""Positives in bins, worked out by hand: who is in which, and what the ranking is worth for each."""

import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from resight.errors import InputError, ManifestError
from resight.evaluate.properties import Property, find_properties, measure_brightness, measure_clutter
from resight.evaluate.results import JudgedQuery, PositiveRanks, find_positive_ranks, list_answers
from resight.evaluate.strata import break_down, check_split, read_split, split_into_bins
from resight.types import Dataset, ImageRef, Judgement, Ranking


def judged(name: str, kept: PositiveRanks) -> JudgedQuery:
    return JudgedQuery(name, "", {"ap": 0.0}, "", None, 0.0, positive_ranks=kept)


def test_bins_have_equal_counts_and_equal_values_share_a_bin() -> None:
    values = {"q": {f"p{number}": float(number) for number in range(10)}}
    whole = split_into_bins(Property("size", "", values), 5)
    assert whole.labels == ("0–1", "2–3", "4–5", "6–7", "8–9")
    assert whole.numbers["q"] == {f"p{number}": number // 2 for number in range(10)}
    tied = split_into_bins(Property("size", "", {"q": {"a": 1.0, "b": 1.0, "c": 1.0, "d": 9.0}}), 2)
    assert (tied.labels, tied.numbers["q"]) == (("1", "9"), {"a": 0, "b": 0, "c": 0, "d": 1})


def test_words_make_one_bin_each_and_too_many_are_refused() -> None:
    whole = split_into_bins(Property("light", "", {"q": {"a": "night", "b": "day"}, "r": {"a": "day"}}), 5)
    assert whole.labels == ("day", "night")
    assert whole.numbers == {"q": {"a": 1, "b": 0}, "r": {"a": 0}}
    with pytest.raises(InputError, match="too many values"):
        split_into_bins(Property("id", "", {"q": {f"p{number}": f"word {number}" for number in range(30)}}), 5)


def test_positives_outside_a_bin_leave_the_ranking_and_queries_without_one_leave_the_bin() -> None:
    # Ranking of q: a (small), x, b (large), junk, c (large); of r: y, d (small).
    queries = [judged("q", PositiveRanks({"a": 0, "b": 2, "c": 4}, ignored=(3,))), judged("r", PositiveRanks({"d": 1}))]
    sizes = {"q": {"a": 0.1, "b": 0.8, "c": 0.9}, "r": {"d": 0.2}}
    (part,) = break_down(queries, [Property("size", "area", sizes)], ["ap", "recall@1"], bins=2)
    small, large = part.bins
    assert (small.label, small.positives, large.label, large.positives) == ("0.1–0.2", 2, "0.8–0.9", 2)
    assert small.values["q"] == {"ap": 1.0, "recall@1": 1.0}
    assert small.values["r"] == {"ap": 0.5, "recall@1": 0.0}
    # Without a and the junk: x, b, c.
    assert large.values == {"q": {"ap": pytest.approx((1 / 2 + 2 / 3) / 2), "recall@1": 0.0}}
    assert part.left_out == 0


def test_a_positive_that_was_not_found_counts_and_one_without_the_property_is_in_no_bin() -> None:
    queries = [judged("q", PositiveRanks({"a": 0, "b": None, "c": 1}))]
    (part,) = break_down(queries, [Property("size", "", {"q": {"a": 0.5, "b": 0.5}})], ["ap"], bins=5)
    assert [one.values for one in part.bins] == [{"q": {"ap": 0.5}}]
    assert part.left_out == 1


def test_overlaps_and_protocols_reach_the_bins() -> None:
    kept = PositiveRanks({"a": 0, "b": 1}, overlaps={"a": 0.5}, other_grades={"a": 2})
    (part,) = break_down(
        [judged("q", kept)], [Property("x", "", {"q": {"a": 1.0, "b": 2.0}})], ["locscore", "easy/ap", "hard/ap"], 2
    )
    first, second = (one.values["q"] for one in part.bins)
    assert first["locscore"] == 0.5
    assert (first["easy/ap"], second["hard/ap"]) == (1.0, 1.0)
    assert all(math.isnan(value) for value in (first["hard/ap"], second["easy/ap"], second["locscore"]))


def test_a_trace_keeps_places_junk_and_overlaps() -> None:
    judgement = Judgement({"a": 1, "b": 2, "no": 0}, frozenset({"junk"}), {"a": (0, 0, 10, 10), "b": (0, 0, 10, 10)})
    kept = find_positive_ranks(["junk", "x", "a", "b"], judgement, {"a": (0.0, 0.0, 10.0, 5.0)})
    assert kept == PositiveRanks({"a": 2, "b": 3}, (0,), {"a": 0.5, "b": 0.0}, {"b": 2})
    assert kept.first == 2
    assert PositiveRanks({"a": None}).first is None


def test_the_first_answers_are_kept_and_the_first_positive_with_its_rank() -> None:
    ids = ("junk", "x", "y", "z", "u", "a", "b")
    ranking = Ranking("q", ids, np.zeros(7, np.float32), {}, {}, {"a": {"late": 0.5}}, {}, {"a": 0.25})
    answers = list_answers(ranking, Judgement({"a": 1, "b": 1}, frozenset({"junk"})), {"a": Path("a.jpg")})
    assert [(answer.id, answer.rank, answer.positive) for answer in answers] == [
        ("x", 1, False),
        ("y", 2, False),
        ("z", 3, False),
        ("a", 5, True),
    ]
    assert (answers[3].signals, answers[3].probability, answers[3].path) == ({"late": 0.5}, 0.25, Path("a.jpg"))


def test_brightness_is_mean_l_and_clutter_the_share_of_edges_outside_the_box() -> None:
    assert measure_brightness(np.zeros((8, 8, 3), np.uint8)) == 0
    assert measure_brightness(np.full((8, 8, 3), 255, np.uint8)) == pytest.approx(100, abs=0.1)
    flat = np.full((64, 64, 3), 90, np.uint8)
    assert measure_clutter(flat) == 0
    checks = flat.copy()
    checks[16:48:4, 16:48] = 255
    assert measure_clutter(checks) == pytest.approx(0.14, abs=0.01)  # beside 8 lines of 32 pixels, on both sides
    assert measure_clutter(checks, (14, 14, 50, 50)) == 0
    assert measure_clutter(checks, (0, 0, 64, 64)) == measure_clutter(checks)  # nothing is outside


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    for name, grey in (("dark", 10), ("bright", 240)):
        Image.fromarray(np.full((50, 100, 3), grey, np.uint8)).save(tmp_path / f"{name}.png")
    database = tuple(
        ImageRef(name, tmp_path / f"{name}.png", attributes={"year": year})
        for name, year in (("dark", 1900), ("bright", 2000))
    )
    truth = Judgement({"dark": 1, "bright": 1}, boxes={"dark": (0, 0, 50, 50), "bright": (40, 20, 60, 30)})
    query = ImageRef("q", tmp_path / "dark.png", attributes={"walk": "night"})
    return Dataset("made", database, (query,), {"q": truth})


def test_properties_come_from_boxes_pictures_and_attributes(dataset: Dataset) -> None:
    def sizes(_: object) -> dict[str, tuple[int, int]]:
        return {"dark": (100, 50), "bright": (100, 50)}

    names = ("size", "centre", "brightness", "year", "walk", "query.walk")
    found = {part.name: part.values["q"] for part in find_properties(dataset, names, sizes)}
    assert found["size"] == {"dark": 0.5, "bright": 0.04}
    assert found["centre"] == {"dark": pytest.approx(25 / (np.hypot(100, 50) / 2)), "bright": 0}
    assert found["brightness"]["dark"] < 5 < 90 < found["brightness"]["bright"]
    assert found["year"] == {"dark": 1900.0, "bright": 2000.0}
    assert found["walk"] == found["query.walk"] == {"dark": "night", "bright": "night"}
    with pytest.raises(InputError, match="has no property or attribute called 'colour'"):
        find_properties(dataset, ["colour"], sizes)


def test_a_split_is_read_and_other_columns_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "overlap.csv"
    file.write_text("id,class,split,matches\nq1,x,overlapping,3\nq2,,other,0\n")
    assert read_split(file) == {"q1": "overlapping", "q2": "other"}


def test_a_query_in_two_parts_is_refused_with_the_line(tmp_path: Path) -> None:
    file = tmp_path / "split.csv"
    file.write_text("id,split\nq1,a\nq1,b\n")
    with pytest.raises(ManifestError, match="line 3"):
        read_split(file)


def test_a_split_of_other_queries_is_refused() -> None:
    check_split({"q1": "a"}, ["q1", "q2"])
    with pytest.raises(InputError, match="none of the queries"):
        check_split({"q9": "a"}, ["q1", "q2"])
