from resight.audit.dedup.pairs import Pair
from resight.audit.leaks.removal import Removal, choose_removals

CLASSES = {"e1": "Eiffel", "e2": "Eiffel", "e3": "Eiffel", "t1": "Tour Eiffel", "l1": "Louvre", "n1": None, "n2": None}
NAMES = {"Eiffel": "Eiffel Tower", "Tour Eiffel": "Tour Eiffel", "Louvre": "Louvre", "Hôtel": "Hôtel des Invalides"}


def pair(a: str, b: str, chance: float = 0.9) -> Pair:
    return Pair(a, b, "same", chance)


def test_the_most_frequent_class_of_an_image_goes_and_the_other_is_told() -> None:
    found = choose_removals([pair("q", "e1"), pair("q", "e2"), pair("q", "t1", 0.99)], CLASSES, NAMES)
    assert found.removals == (Removal("Eiffel", True, "matches", ("q",), 2),)
    assert found.left == {"Tour Eiffel": 1}


def test_every_class_goes_where_that_is_asked_for() -> None:
    found = choose_removals([pair("q", "e1"), pair("q", "e2"), pair("q", "t1")], CLASSES, NAMES, every=True)
    assert [removal.name for removal in found.removals] == ["Eiffel", "Tour Eiffel"]
    assert found.left == {}


def test_of_classes_with_equal_counts_the_surer_one_goes() -> None:
    found = choose_removals([pair("q", "e1", 0.8), pair("q", "t1", 0.9)], CLASSES, NAMES)
    assert [removal.name for removal in found.removals] == ["Tour Eiffel"]


def test_a_class_is_listed_once_with_all_images_that_it_goes_for() -> None:
    found = choose_removals([pair("q2", "e1"), pair("q1", "e2"), pair("q3", "l1")], CLASSES, NAMES)
    assert [(removal.name, removal.evaluation, removal.pairs) for removal in found.removals] == [
        ("Eiffel", ("q1", "q2"), 2),
        ("Louvre", ("q3",), 1),
    ]


def test_images_without_a_class_go_one_by_one() -> None:
    found = choose_removals([pair("q", "n1"), pair("q", "n2"), pair("q", "e1")], CLASSES, NAMES)
    assert [(removal.name, removal.labelled) for removal in found.removals] == [
        ("Eiffel", True),
        ("n1", False),
        ("n2", False),
    ]


def test_a_text_finds_names_whatever_their_case_and_accents() -> None:
    found = choose_removals([], CLASSES, NAMES, ["HOTEL des", "", "tower"])
    assert [(removal.name, removal.why, removal.text) for removal in found.removals] == [
        ("Eiffel", "text", "tower"),
        ("Hôtel", "text", "HOTEL des"),
    ]


def test_a_class_that_goes_for_its_matches_is_not_listed_again_for_its_name() -> None:
    found = choose_removals([pair("q", "l1")], CLASSES, NAMES, ["louvre"])
    assert [(removal.name, removal.why) for removal in found.removals] == [("Louvre", "matches")]


def test_nothing_confirmed_removes_nothing() -> None:
    found = choose_removals([], CLASSES, NAMES)
    assert (found.removals, found.left) == ((), {})
