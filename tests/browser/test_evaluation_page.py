"""The page of an evaluation in a real browser: charts and table, wide and narrow, light and dark."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from resight.evaluate.pages.evaluation_page import render
from resight.evaluate.table import Chart, Line, Table

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra dev)")

PLACES, TICKS = (0.3, 1.0, 1.3, 2.3), ("2", "10", "20", "a name of some length")
NAMES = ("recall@1", "recall@5", "recall@10", "ap")
LINES = tuple(Line(name, (0.5 + number / 20, 0.6, 0.7, 0.8)) for number, name in enumerate(NAMES))
TABLE = Table(
    "a_recipe_with_a_name_that_is_rather_long: a data set, 200 images",
    ("S", *NAMES, "recall@1 against 200", "ms per query"),
    tuple((tick, *["0.8450 (100.0 %)"] * 4, "-0.0050 [-0.0250, +0.0150]", "2.6") for tick in TICKS),
    ("a note",),
    "The smallest S is 10.",
    (
        Chart("Quality", "S, logarithmic", PLACES, TICKS, LINES, 1, (0.75, "94 % of recall@1")),
        Chart("Milliseconds per query", "S, logarithmic", PLACES, TICKS, LINES[:1], 1, from_zero=True),
    ),
    1,
)


ABSENT = "a network with a long name, pooled by one of many poolings"
RANKED = Table(
    "a catalogue: a data set, 200 images",
    (
        "variant",
        "bytes an image",
        *NAMES,
        *(f"{name} again" for name in NAMES),
        "recall@1 against row 0",
        "ms per query",
    ),
    tuple(
        (f"row {row}", "3,072", *["0.8450 ±0.050"] * 8, "+0.0050 [-0.0250, +0.0150]", "2.6")
        if row != 20
        else (ABSENT, *["–"] * 11)
        for row in range(40)
    ),
    ("a note",),
    marks={(3, 2): "best", (4, 2): "second"},
    absent={ABSENT: "its weights are not here"},
)


@pytest.fixture(scope="module")
def page(chromium, tmp_path_factory: pytest.TempPathFactory) -> Iterator["sync_api.Page"]:
    yield from show(chromium, TABLE, tmp_path_factory.mktemp("page") / "page.html")


@pytest.fixture(scope="module")
def catalogue(chromium, tmp_path_factory: pytest.TempPathFactory) -> Iterator["sync_api.Page"]:
    """Forty rows, one of them absent."""
    yield from show(chromium, RANKED, tmp_path_factory.mktemp("catalogue") / "page.html")


def show(chromium: "sync_api.Browser", table: Table, file: Path) -> Iterator["sync_api.Page"]:
    file.write_text(render(table), encoding="utf-8")
    opened = chromium.new_page(viewport={"width": 1280, "height": 900})
    complaints: list[str] = []
    requests: list[str] = []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("request", lambda request: requests.append(request.url))
    opened.goto(file.as_uri())
    yield opened
    assert (complaints, requests) == ([], [file.as_uri()])


@pytest.mark.parametrize("width", [360, 768, 1280, 1920])
def test_nothing_but_the_table_scrolls_sideways(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    inside = """all => all.every(text => {
        const t = text.getBoundingClientRect(), s = text.ownerSVGElement.getBoundingClientRect()
        return t.left >= s.left - 1 && t.right <= s.right + 1 && t.bottom <= s.bottom + 1
    })"""
    assert page.locator(".chart text").evaluate_all(inside)


def test_charts_stand_side_by_side_where_there_is_room_and_else_below_each_other(page):
    def tops() -> list[float]:
        return [chart.bounding_box()["y"] for chart in page.locator("svg.chart").all()]

    page.set_viewport_size({"width": 1280, "height": 900})
    assert tops()[0] == pytest.approx(tops()[1], abs=1)
    page.set_viewport_size({"width": 420, "height": 900})
    assert tops()[0] < tops()[1]


def test_labels_of_an_axis_do_not_overlap(page):
    boxes = [label.bounding_box() for label in page.locator("svg.chart").first.locator("text").all()]
    for number, first in enumerate(boxes):
        for second in boxes[number + 1 :]:
            across = min(first["x"] + first["width"], second["x"] + second["width"]) - max(first["x"], second["x"])
            down = min(first["y"] + first["height"], second["y"] + second["height"]) - max(first["y"], second["y"])
            assert across <= 1 or down <= 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_and_words_stand_out_from_the_paper(page, scheme):
    page.emulate_media(color_scheme=scheme)
    paper = light(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    marks = page.locator("svg.chart").first.locator("g > *:first-child")
    colours = set(marks.evaluate_all("all => all.map(mark => getComputedStyle(mark).fill)"))
    assert len(colours) == 4
    words = set(page.locator("svg.chart text").evaluate_all("all => all.map(text => getComputedStyle(text).fill)"))
    assert all(contrast(light(colour), paper) >= 3 for colour in colours)
    assert all(contrast(light(colour), paper) >= 4.5 for colour in words)


def test_the_chosen_row_is_marked(page):
    row = page.locator("tr.chosen")
    assert row.locator("th").inner_text() == "10"
    assert row.evaluate("row => getComputedStyle(row.firstChild).backgroundColor") != page.evaluate(
        "getComputedStyle(document.body).backgroundColor"
    )


@pytest.mark.parametrize("width", [360, 1280])
def test_heads_and_labels_stay_in_sight_in_a_long_table(catalogue, width):
    catalogue.set_viewport_size({"width": width, "height": 900})
    assert catalogue.evaluate("document.documentElement.scrollWidth") == width
    frame = catalogue.locator(".table")
    frame.evaluate("frame => frame.scrollTo(200, 600)")
    box, head = frame.bounding_box(), catalogue.locator("thead th").nth(0).bounding_box()
    label = catalogue.locator("tbody th").nth(30).bounding_box()
    assert (head["x"], head["y"]) == pytest.approx((box["x"], box["y"]), abs=1)
    assert label["x"] == pytest.approx(box["x"], abs=1)
    assert label["width"] <= max(0.45 * width, 500)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_best_is_bold_the_second_underlined_and_an_absent_row_quiet(catalogue, scheme):
    catalogue.emulate_media(color_scheme=scheme)
    assert int(catalogue.locator("td strong").evaluate("mark => getComputedStyle(mark).fontWeight")) >= 700
    assert catalogue.locator("td u").evaluate("mark => getComputedStyle(mark).textDecorationLine") == "underline"
    assert catalogue.locator("td strong").inner_text() == "0.8450"
    row = catalogue.locator("tr.absent")
    assert row.get_attribute("title") == "its weights are not here"
    paper = light(catalogue.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert contrast(light(row.locator("td").first.evaluate("cell => getComputedStyle(cell).color")), paper) >= 4.5
    assert f"{ABSENT}: its weights are not here" in catalogue.locator("li").all_inner_texts()


def light(colour: str) -> float:
    """Relative luminance of "rgb(r, g, b)", by WCAG 2.2."""
    red, green, blue = (int(part) / 255 for part in re.findall(r"\d+", colour)[:3])
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: float, second: float) -> float:
    return (max(first, second) + 0.05) / (min(first, second) + 0.05)
