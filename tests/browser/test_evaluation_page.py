"""The page of an evaluation in a real browser: charts and table, wide and narrow, light and dark."""

import os
import re
import shutil
from collections.abc import Iterator

import pytest

from resight.evaluate.chart import Chart, Line
from resight.evaluate.report import Table, to_html

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra dev)")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed; set CHROMIUM to its path")

ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
PLACES, TICKS = (0.3, 1.0, 1.3, 2.3), ("2", "10", "20", "a name of some length")
NAMES = ("recall@1", "recall@5", "recall@10", "ap")
LINES = tuple(Line(name, (0.5 + number / 20, 0.6, 0.7, 0.8)) for number, name in enumerate(NAMES))
TABLE = Table(
    "a_recipe_with_a_name_that_is_rather_long: a data set, 200 images",
    ("S", *NAMES, "recall@1 against 200", "ms a query"),
    tuple((tick, *["0.8450 (100.0 %)"] * 4, "-0.0050 [-0.0250, +0.0150]", "2.6") for tick in TICKS),
    ("a note",),
    "The smallest S is 10.",
    (
        Chart("Quality", "S, logarithmic", PLACES, TICKS, LINES, 1, (0.75, "94 % of recall@1")),
        Chart("Milliseconds a query", "S, logarithmic", PLACES, TICKS, LINES[:1], 1, from_zero=True),
    ),
    1,
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator["sync_api.Page"]:
    file = tmp_path_factory.mktemp("page") / "page.html"
    file.write_text(to_html(TABLE), encoding="utf-8")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        opened = chromium.new_page(viewport={"width": 1280, "height": 900})
        complaints: list[str] = []
        requests: list[str] = []
        opened.on("console", lambda message: complaints.append(message.text))
        opened.on("request", lambda request: requests.append(request.url))
        opened.goto(file.as_uri())
        yield opened
        chromium.close()
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


def light(colour: str) -> float:
    """Relative luminance of "rgb(r, g, b)", by WCAG 2.2."""
    red, green, blue = (int(part) / 255 for part in re.findall(r"\d+", colour)[:3])
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: float, second: float) -> float:
    return (max(first, second) + 0.05) / (min(first, second) + 0.05)
