"""The map of a search in a real chromium: on any screen, in light and dark, enlarged, without script, with tiles."""

import re
from pathlib import Path

import numpy as np
import pytest

from resight.explain.search_page import HitView, QueryView, Section, render_many
from resight.explain.tiles import Tiles
from resight.geodesy import PositionEstimate
from resight.types import Hit

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra dev)")

CHANCES = [0.95, 0.7, 0.3, 0.05, None, 0.9, 0.9, 0.9]
PIXELS = np.full((30, 40, 3), 120, np.uint8)
DOT = bytes.fromhex(  # a PNG of one pixel
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763c8c8c80000024800c1"
    "1c5a3b2e0000000049454e44ae426082"
)


def make_page(tiles: Tiles | None = None) -> str:
    """The last four answers were taken at one place, 300 m north of the query; the estimate is 80 m from it."""
    hits = []
    for number, chance in enumerate(CHANCES):
        lat = 52.5 + 0.0006 * number if number < 4 else 52.5027
        attributes = {"lat": lat, "lon": 13.28, "heading": 40.0 * number}
        hits.append(HitView(Hit(f"image {number}", Path("a"), 0.5, chance, attributes=attributes), PIXELS, (40, 30)))
    query = QueryView("q.jpg", PIXELS, (40, 30), attributes={"lat": 52.5, "lon": 13.28, "heading": 200})
    position = PositionEstimate(52.50072, 13.28, 100.0, probability=0.8, known=True)
    return render_many("Search", [Section(query, hits, position=position)], tiles)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("map") / "page.html"
    file.write_text(make_page(), encoding="utf-8")
    return file.as_uri()


def middle(box: dict[str, float]) -> tuple[float, float]:
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.mark.parametrize("width", [360, 390, 768, 1280, 1920])
def test_the_map_fits_any_screen_and_its_words_and_marks_stay_as_large(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    frame = page.locator(".geo-frame").bounding_box()
    assert frame["width"] > 280
    assert frame["width"] / frame["height"] == pytest.approx(4 / 3, abs=0.02)
    words = page.locator(".geo-map text").all()
    assert len(words) > 10
    for text in words:
        box = text.bounding_box()
        assert box["height"] >= 10, "too small to be read"
        assert frame["x"] - 1 <= box["x"]
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1
        assert box["y"] + box["height"] <= frame["y"] + frame["height"] + 1


@pytest.mark.parametrize("width", [360, 1280])
def test_numbered_marks_do_not_cover_each_other_even_where_images_were_taken_at_one_place(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    discs = [middle(text.bounding_box()) for text in page.locator(".geo-mark text").all()]
    assert len(discs) == len(CHANCES)
    for number, first in enumerate(discs):
        for second in discs[number + 1 :]:
            assert np.hypot(first[0] - second[0], first[1] - second[1]) >= 18


@pytest.mark.parametrize("width", [360, 1280])
def test_the_circle_is_round_and_as_large_as_the_scale_bar_says(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    circle = page.locator(".geo-circle").bounding_box()
    assert circle["width"] == pytest.approx(circle["height"], rel=0.02)
    bar = page.locator(".geo-bar").first.bounding_box()
    told = page.locator("svg:has(> line.geo-bar) text").text_content()
    metres = float(told.split()[0])
    assert told.split()[1] == "m"
    assert (circle["width"] - 1.5) / bar["width"] == pytest.approx(200 / metres, rel=0.05)


def test_enlarging_spreads_the_places_keeps_marks_as_they_are_and_the_estimate_in_sight(page):
    def measure() -> tuple[float, float]:
        first, second = (page.locator(f".geo-mark.{kind}").bounding_box() for kind in ("truth", "estimate"))
        return abs(middle(first)[1] - middle(second)[1]), second["width"]

    apart, size = measure()
    page.get_by_label("4×").check()
    later, same = measure()
    assert later == pytest.approx(4 * apart, rel=0.1)
    assert same == pytest.approx(size, abs=1)
    frame = page.locator(".geo-frame").bounding_box()
    x, y = middle(page.locator(".geo-mark.estimate").bounding_box())
    assert (x, y) == pytest.approx(middle(frame), abs=20)
    page.set_viewport_size({"width": 390, "height": 900})
    page.wait_for_function("document.querySelector('.geo-frame').clientWidth < 360")
    x, y = middle(page.locator(".geo-mark.estimate").bounding_box())
    assert (x, y) == pytest.approx(middle(page.locator(".geo-frame").bounding_box()), abs=20)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.get_by_label("1×").check()
    assert measure()[0] == pytest.approx(apart, rel=0.01)


def test_the_map_can_be_enlarged_and_scrolled_by_keyboard(page):
    page.get_by_label("1×").focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_label("2×").is_checked()
    frame = page.locator(".geo-frame")
    frame.focus()
    before = frame.evaluate("frame => frame.scrollTop")
    page.keyboard.press("ArrowDown")
    page.wait_for_function("before => document.querySelector('.geo-frame').scrollTop > before", arg=before)


def test_a_mark_says_what_it_is_and_leads_to_its_answer(page):
    mark = page.locator(".geo-mark.likely")
    assert mark.locator("title").text_content() == "2: image 1, 70%"
    mark.locator("circle").last.click()
    assert page.evaluate("location.hash") == "#answer-1-2"


def test_all_that_the_map_shows_stands_in_a_table(page):
    page.get_by_text("Map as a table").click()
    rows = page.locator(".geo-table tbody tr")
    assert rows.count() == len(CHANCES) + 2
    told = [text.replace("\u00a0", " ") for text in rows.nth(1).locator("td").all_inner_texts()]
    assert told == ["", "Estimated position of the query", "52.50072° N, 13.28000° E", "", "80 m", "± 100 m (90%)"]


def test_the_map_has_a_name_and_nothing_in_it_is_reached_by_tab(page):
    assert page.get_by_role("img", name="Where the answers are: 10 positions").count() == 1
    assert page.locator(".geo-map a:not([tabindex='-1'])").count() == 0


def test_the_map_can_be_read_and_enlarged_without_script(chromium, address):
    context = chromium.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 900})
    plain = context.new_page()
    plain.goto(address)
    width = plain.locator(".geo-map").bounding_box()["width"]
    plain.get_by_label("2×").check()
    assert plain.locator(".geo-map").bounding_box()["width"] == pytest.approx(2 * width, abs=2)
    assert plain.locator(".geo-mark").count() == len(CHANCES) + 2
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_and_numbers_of_the_map_have_the_contrast_of_wcag_aa(page, scheme):
    page.emulate_media(color_scheme=scheme)
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")
    checked = page.evaluate(CONTRAST)
    assert len(checked) > 20
    assert [one for one in checked if one[1] < 4.5] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_stand_out_from_the_paper(page, scheme):
    page.emulate_media(color_scheme=scheme)
    ratios = page.evaluate(OUTLINES)
    assert len(ratios) == len(CHANCES) + 2
    assert min(ratios) >= 3, ratios


def test_tiles_are_asked_of_their_server_alone(chromium, tmp_path):
    file = tmp_path / "page.html"
    tiles = Tiles("https://tiles.example.org/{z}/{x}/{y}.png", "© somebody")
    file.write_text(make_page(tiles), encoding="utf-8")
    opened = chromium.new_page(viewport={"width": 1280, "height": 900})
    complaints: list[str] = []
    asked: list[str] = []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("request", lambda request: asked.append(request.url))
    opened.route(re.compile("^https://tiles"), lambda route: route.fulfill(body=DOT, content_type="image/png"))
    opened.goto(file.as_uri(), wait_until="networkidle")
    assert complaints == []
    outside = [url for url in asked if not url.startswith(("data:", "file:"))]
    assert len(outside) >= 4
    assert all(url.startswith("https://tiles.example.org/") for url in outside)
    assert opened.get_by_text("© somebody").is_visible()
    opened.close()


LIGHT = """
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (rgb) => rgb.slice(0, 3)
    .map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (one, other) => {
    const [dark, light] = [one, other].map((colour) => luminance(parse(colour))).sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const background = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (parse(colour).length === 3 || parse(colour)[3] === 1) { return colour; }
    }
    return "rgb(255, 255, 255)";
  };
"""
# Text of the map and what is behind it: the shape that it is written into, else the nearest opaque background.
CONTRAST = f"""() => {{ {LIGHT}
  return [...document.querySelectorAll(".where *:not(title)")]
    .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
    .map((e) => {{
      const style = getComputedStyle(e);
      const shape = e.previousElementSibling;
      const behind = e.closest(".geo-mark") ? getComputedStyle(shape).fill : background(e);
      return [e.textContent.trim().slice(0, 30), contrast(e.closest("svg") ? style.fill : style.color, behind)];
    }});
}}"""
# The better of a mark's fill and outline against the paper.
OUTLINES = f"""() => {{ {LIGHT}
  return [...document.querySelectorAll(".geo-mark")].map((mark) => {{
    const shape = [...mark.querySelectorAll("circle:not(.geo-dot), path:not(.geo-ray):not(.geo-casing)")].pop();
    const style = getComputedStyle(shape);
    const colours = [style.fill, style.stroke].filter((colour) => colour !== "none");
    return Math.max(...colours.map((colour) => contrast(colour, background(mark))));
  }});
}}"""
