"""Which images the page of duplicates shows; pictures are those of a collection, and are tested with the command."""

import re

from resight.audit.dedup.duplicates_page import render
from resight.audit.dedup.find_duplicates import Report
from resight.audit.dedup.pairs import Pair
from resight.errors import CollectionError


class Empty:
    """A collection that knows no image any more: cards have names and no pictures."""

    def records(self, ids: list[str]) -> list[object]:
        raise CollectionError(f"no image {ids}")


def show(*pairs: Pair) -> str:
    return render(Report(pairs, 9, 1, 5, 0.2, 0, ()), Empty(), Empty())  # type: ignore[arg-type]


def list_names(page: str) -> list[str]:
    return re.findall(r"(\w+\.jpg)<span>", page)


def test_exact_copies_of_a_member_are_shown_with_what_they_are_copies_of() -> None:
    page = show(Pair("a.jpg", "b.jpg", "near_copy", 0.9, 1, "a.jpg"), Pair("b.jpg", "c.jpg", "copy", 1.0, 1, "a.jpg"))
    assert list_names(page) == ["a.jpg", "b.jpg", "c.jpg"]
    assert "Group 1: 3 images" in page
    assert re.search(r"Exact copy, [^<]*of b\.jpg", page)


def test_a_group_without_a_pair_of_the_kept_image_is_shown_too() -> None:
    page = show(Pair("b.jpg", "c.jpg", "copy", 1.0, 1, "a.jpg"))
    assert list_names(page)[0] == "a.jpg"
    assert "c.jpg" in list_names(page)


def test_a_pair_of_two_members_shows_neither_twice() -> None:
    page = show(
        Pair("a.jpg", "b.jpg", "near_copy", 0.9, 1, "a.jpg"),
        Pair("a.jpg", "c.jpg", "near_copy", 0.8, 1, "a.jpg"),
        Pair("b.jpg", "c.jpg", "near_copy", 0.7, 1, "a.jpg"),
    )
    assert list_names(page) == ["a.jpg", "b.jpg", "c.jpg"]


def test_the_expected_rate_is_that_of_pairs_that_are_no_exact_copies() -> None:
    page = show(
        Pair("a.jpg", "b.jpg", "same", 0.8, 1, "a.jpg"),
        *(Pair("a.jpg", f"{n}.jpg", "copy", 1.0, 1, "a.jpg") for n in "cde"),
    )
    assert "0.2 of the 1 that are no exact copies (20.00 %)" in page
