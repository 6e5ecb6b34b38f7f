from resight.audit.dedup.pairs import Pair
from resight.audit.leaks.removal import Removal, SetRow, SizeRow, tabulate_removed, tabulate_sets, tabulate_sizes
from resight.audit.leaks.sources import Classes

SETS = {"p1": "Paris", "p2": "Paris", "p3": "Paris", "o1": "Oxford"}
CLASSES = Classes({"Eiffel": 731, "Camera": 98, "Invalides": 23, "Other": 48}, {"Eiffel": "Eiffel Tower"}, 100)
REMOVALS = (
    Removal("Eiffel", True, "matches", ("p1", "p2", "o1"), 7),
    Removal("Camera", True, "matches", ("o1",), 2),
    Removal("Invalides", True, "text", text="invalides"),
    Removal("lone.jpg", False, "matches", ("p2",), 1),
)
CONFIRMED = [Pair(name, "x", "same", 0.9) for name in ("p1", "p1", "p2", "o1")]


def test_sets_touched_and_what_goes_for_them_add_up() -> None:
    assert tabulate_sets(SETS, CONFIRMED, REMOVALS, CLASSES.sizes) == (
        SetRow("Oxford", 1, 1, 1, 98),
        SetRow("Paris", 3, 2, 1, 732),  # Eiffel, which two of its images share with Oxford's one, and the lone image
        SetRow("text", None, None, 1, 23),
        SetRow("total", 4, 3, 3, 853),
    )


def test_the_training_set_before_and_after() -> None:
    assert tabulate_sizes(CLASSES, REMOVALS) == (
        SizeRow("TRAIN", 1000, 4),
        SizeRow("TRAIN without the overlap", 147, 1),
    )


def test_each_class_that_goes_has_its_size_its_name_and_a_reason() -> None:
    rows = tabulate_removed(REMOVALS, CLASSES)
    assert [(row.name, row.called, row.images, row.why) for row in rows] == [
        ("Eiffel", "Eiffel Tower", 731, "7 confirmed matches"),
        ("Camera", "", 98, "2 confirmed matches"),
        ("Invalides", "", 23, "the name contains 'invalides'"),
        ("lone.jpg", "an image without a class", 1, "1 confirmed matches"),
    ]
