import pytest

from resight.explain.format import say_box, say_chance, say_score, say_time, say_value, say_verdict


@pytest.mark.parametrize(
    ("probability", "text"),
    [(0, "<1%"), (0.004, "<1%"), (0.006, "1%"), (0.62, "62%"), (0.994, "99%"), (0.996, ">99%"), (1, ">99%")],
)
def test_a_percentage_never_claims_certainty(probability, text):
    assert say_chance(probability) == text


@pytest.mark.parametrize(
    ("probability", "verdict"),
    [
        (1, "very likely"),
        (0.9, "very likely"),
        (0.89, "likely"),
        (0.5, "likely"),
        (0.49, "unlikely"),
        (0, "very unlikely"),
    ],
)
def test_the_verdict_follows_the_probability(probability, verdict):
    assert say_verdict(probability) == verdict


@pytest.mark.parametrize(
    ("score", "text"),
    [(0.91, "0.910"), (-0.5, "-0.500"), (14.25, "14.2"), (90.0, "90"), (297, "297"), (12345.6, "12346"), (None, "–")],
)
def test_small_scores_keep_decimals_and_counts_have_none(score, text):
    assert say_score(score) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0031, "3.1 ms"), (0.412, "412 ms"), (1.26, "1.3 s"), (75, "75.0 s"), (None, "–")]
)
def test_times_are_in_the_unit_that_fits(seconds, text):
    assert say_time(seconds) == text


def test_a_box_is_said_by_its_range_and_its_size():
    assert say_box((3.6, 4.2, 634, 337)).replace("\u00a0", " ") == "x 4–634, y 4–337 (630 × 333 px)"


@pytest.mark.parametrize(
    ("value", "text"), [(True, "yes"), (False, "no"), (1, "1"), (51.507351, "51.507351"), (0.5, "0.5"), ("a", "a")]
)
def test_attributes_are_said_plainly(value, text):
    assert say_value(value) == text
