from resight.audit.dedup.pairs import Pair
from resight.audit.leaks.name_candidates import Candidate
from resight.audit.leaks.removal import (
    Removal,
    SetRow,
    SizeRow,
    choose_removals,
    tabulate_removed,
    tabulate_sets,
    tabulate_sizes,
)
from resight.audit.leaks.sources import Classes

CLASSES = {"e1": "Eiffel", "e2": "Eiffel", "e3": "Eiffel", "t1": "Tour Eiffel", "l1": "Louvre", "n1": None, "n2": None}
SETS = {"p1": "Paris", "p2": "Paris", "p3": "Paris", "o1": "Oxford"}
COUNTED = Classes({"Eiffel": 731, "Camera": 98, "Invalides": 23, "Other": 48}, {"Eiffel": "Eiffel Tower"}, 100)
REMOVALS = (
    Removal("Eiffel", True, "matches", ("p1", "p2", "o1"), 7),
    Removal("Camera", True, "matches", ("o1",), 2),
    Removal("Invalides", True, "text", text="invalides"),
    Removal("lone.jpg", False, "matches", ("p2",), 1),
)
CONFIRMED = [Pair(name, "x", "same", 0.9) for name in ("p1", "p1", "p2", "o1")]


def pair(a: str, b: str, chance: float = 0.9) -> Pair:
    return Pair(a, b, "same", chance)


def test_the_most_frequent_class_of_an_image_goes_and_the_other_is_reported() -> None:
    found = choose_removals([pair("q", "e1"), pair("q", "e2"), pair("q", "t1", 0.99)], CLASSES)
    assert found.removals == (Removal("Eiffel", True, "matches", ("q",), 2),)
    assert found.left == {"Tour Eiffel": 1}


def test_every_class_goes_where_that_is_asked_for() -> None:
    found = choose_removals([pair("q", "e1"), pair("q", "e2"), pair("q", "t1")], CLASSES, every=True)
    assert [removal.name for removal in found.removals] == ["Eiffel", "Tour Eiffel"]
    assert found.left == {}


def test_of_classes_with_equal_counts_the_surer_one_goes() -> None:
    found = choose_removals([pair("q", "e1", 0.8), pair("q", "t1", 0.9)], CLASSES)
    assert [removal.name for removal in found.removals] == ["Tour Eiffel"]


def test_a_class_is_listed_once_with_all_images_that_it_goes_for() -> None:
    found = choose_removals([pair("q2", "e1"), pair("q1", "e2"), pair("q3", "l1")], CLASSES)
    assert [(removal.name, removal.evaluation, removal.pairs) for removal in found.removals] == [
        ("Eiffel", ("q1", "q2"), 2),
        ("Louvre", ("q3",), 1),
    ]


def test_images_without_a_class_go_one_by_one() -> None:
    found = choose_removals([pair("q", "n1"), pair("q", "n2"), pair("q", "e1")], CLASSES)
    assert [(removal.name, removal.labelled) for removal in found.removals] == [
        ("Eiffel", True),
        ("n1", False),
        ("n2", False),
    ]


def test_of_classes_that_a_text_suggests_only_confirmed_ones_go() -> None:
    suggested = (
        Candidate("Eiffel", "tower", "confirmed"),
        Candidate("Hôtel", "hotel", "open"),
        Candidate("Louvre", "louvre", "refuted"),
    )
    found = choose_removals([], CLASSES, suggested)
    assert found.removals == (Removal("Eiffel", True, "text", text="tower"),)


def test_a_class_that_goes_for_its_matches_is_not_listed_again_for_its_name() -> None:
    found = choose_removals([pair("q", "l1")], CLASSES, [Candidate("Louvre", "louvre", "confirmed")])
    assert [(removal.name, removal.why) for removal in found.removals] == [("Louvre", "matches")]


def test_nothing_confirmed_removes_nothing() -> None:
    found = choose_removals([], CLASSES)
    assert (found.removals, found.left) == ((), {})


def test_sets_touched_and_what_goes_for_them_add_up() -> None:
    assert tabulate_sets(SETS, CONFIRMED, REMOVALS, COUNTED.sizes) == (
        SetRow("Oxford", 1, 1, 1, 98),
        SetRow("Paris", 3, 2, 1, 732),  # Eiffel, which two of its images share with Oxford's one, and the lone image
        SetRow("text", None, None, 1, 23),
        SetRow("total", 4, 3, 3, 853),
    )


def test_the_training_set_before_and_after() -> None:
    assert tabulate_sizes(COUNTED, REMOVALS) == (
        SizeRow("TRAIN", 1000, 4),
        SizeRow("TRAIN without the overlap", 147, 1),
    )


def test_each_class_that_goes_has_its_size_its_name_and_a_reason() -> None:
    rows = tabulate_removed(REMOVALS, COUNTED)
    assert [(row.name, row.called, row.images, row.why) for row in rows] == [
        ("Eiffel", "Eiffel Tower", 731, "7 confirmed matches"),
        ("Camera", "", 98, "2 confirmed matches"),
        ("Invalides", "", 23, "the name contains 'invalides'"),
        ("lone.jpg", "an image without a class", 1, "1 confirmed matches"),
    ]
