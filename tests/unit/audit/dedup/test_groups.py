from pathlib import Path

from resight.audit.dedup.groups import Link, collapse, form_groups, join, keeper_rank
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
    assert [one.id for one in sorted(records, key=keeper_rank)] == ["a", "b", "c", "d", "e"]


def test_the_size_of_a_part_of_a_picture_counts_not_that_of_the_picture():
    assert keeper_rank(record("part", size=(1000, 1000), box="0,0,5,5")) > keeper_rank(record("whole", size=(10, 10)))


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


LEFT, RIGHT = (0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0)


def test_a_collage_does_not_chain_the_pictures_that_it_shows():
    # 0 is a collage; 1 and 2 are copies of its left half, 3 and 4 of its right.
    links = [
        Link(0, 1, 0.99, region_a=LEFT),
        Link(0, 2, 0.98, region_a=LEFT),
        Link(0, 3, 0.97, region_a=RIGHT),
        Link(0, 4, 0.96, region_a=RIGHT),
        Link(1, 2, 0.99),
        Link(3, 4, 0.99),
    ]
    assert form_groups([0, 1, 2, 3, 4], links) == {0: 0, 1: 0, 2: 0, 3: 3, 4: 3}


def test_a_chain_of_likes_is_not_one_group():
    # 0 is like 1, 1 like 2, 2 like 3; nothing says that 0 is like 2.
    links = [Link(0, 1, 0.9), Link(1, 2, 0.9), Link(2, 3, 0.9)]
    assert form_groups([0, 1, 2, 3], links) == {0: 0, 1: 0, 2: 2, 3: 2}


def test_the_first_in_order_is_the_centre():
    assert form_groups([2, 1, 0], [Link(0, 1, 0.9), Link(0, 2, 0.9), Link(1, 2, 0.9)]) == {0: 2, 1: 2, 2: 2}


def test_an_image_that_only_a_member_knows_joins_when_the_centre_knows_it_too():
    asked = []

    def check(node, centre):
        asked.append((node, centre))
        return Link(node, centre, 0.8) if node == 2 else None

    links = [Link(0, 1, 0.9), Link(1, 2, 0.9), Link(1, 3, 0.9)]
    assert form_groups([0, 1, 2, 3], links, check) == {0: 0, 1: 0, 2: 0}
    assert asked == [(2, 0), (3, 0)]


def test_what_was_refused_for_its_region_is_not_asked_again():
    links = [Link(0, 1, 0.9, region_a=LEFT), Link(0, 2, 0.8, region_a=RIGHT)]

    asked = []
    assert form_groups([0, 1, 2], links, lambda *pair: asked.append(pair)) == {0: 0, 1: 0}
    assert asked == []


def test_a_detail_and_the_whole_are_in_one_group():
    detail = (0.1, 0.1, 0.4, 0.4)
    links = [Link(0, 1, 0.99, region_a=detail), Link(0, 2, 0.98), Link(0, 3, 0.97, region_a=(0.05, 0.05, 0.5, 0.5))]
    assert set(form_groups([0, 1, 2, 3], links)) == {0, 1, 2, 3}


def test_no_links_make_no_groups():
    assert form_groups([0, 1], []) == {}
