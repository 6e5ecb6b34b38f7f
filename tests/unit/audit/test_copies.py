from pathlib import Path

from resight.audit.dedup.groups import collapse, join, rank
from resight.store import ImageRecord


def record(id, sha256="", size=(10, 10), bytes=100, modified_ns=5, **attributes):
    return ImageRecord(id, Path(id), sha256, bytes, modified_ns, size, attributes)


def test_the_largest_then_the_least_compressed_then_the_oldest_then_the_first_is_kept():
    records = [
        record("e", size=(10, 10), modified_ns=1),
        record("d", size=(20, 20), bytes=100),
        record("c", size=(20, 20), bytes=300, modified_ns=2),
        record("b", size=(20, 20), bytes=300, modified_ns=1),
        record("a", size=(20, 20), bytes=300, modified_ns=1),
    ]
    assert [one.id for one in sorted(records, key=rank)] == ["a", "b", "c", "d", "e"]


def test_the_size_of_a_part_of_a_picture_counts_not_that_of_the_picture():
    assert rank(record("part", size=(1000, 1000), box="0,0,5,5")) > rank(record("whole", size=(10, 10)))


def test_images_with_the_same_key_have_one_that_stands_for_them():
    records = [record("b", "x"), record("a", "x"), record("c", "y"), record("d", "x")]
    collapsed = collapse(records, lambda one: one.sha256)
    assert [one.id for one in collapsed.kept] == ["a", "c"]
    assert collapsed.copies == {"a": ("b", "d")}


def test_an_empty_key_equals_none():
    assert collapse([record("a"), record("b")], lambda one: one.sha256).copies == {}


def test_two_parts_of_one_file_are_not_copies():
    parts = [record("left", "x", box="0,0,5,10"), record("right", "x", box="5,0,10,10")]
    assert collapse(parts, lambda one: one.sha256).copies == {}


def test_ten_thousand_blank_pages_make_one_group_of_as_many_pairs():
    collapsed = collapse([record(f"{number:05}", "blank") for number in range(10_000)], lambda one: one.sha256)
    assert len(collapsed.kept) == 1
    assert len(collapsed.copies["00000"]) == 9_999


def test_copies_of_a_copy_go_to_the_one_that_is_kept():
    assert join({"b": ("c",), "x": ("y",)}, {"a": ("b",)}) == {"a": ("b", "c"), "x": ("y",)}
