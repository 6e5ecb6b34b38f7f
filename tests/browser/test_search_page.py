"""The page in a real chromium: what a reader sees, with script and without, wide and narrow."""

from pathlib import Path

import numpy as np
import pytest

from resight.explain.search_page import HitView, QueryView, Section, render_many
from resight.types import Evidence, Hit, Match, TokenMatches

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra dev)")

ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
IDS = ["vase_07", "a/very/long/path/without_any_place_to_break_" + "x" * 80, "<script>alert(1)</script>"]


def stripes(height: int, width: int) -> np.ndarray:
    rows = np.linspace(40, 220, height, dtype=np.uint8)[:, None, None]
    return np.broadcast_to(rows, (height, width, 3)).copy()


def view(rank: int, name: str) -> HitView:
    points = np.random.default_rng(rank).uniform(0, 300, (20, 4)).astype(np.float32)
    corners = np.array([[40, 30], [200, 150], [320, 240]], np.float32)
    boxes = np.hstack([corners, corners + 40])
    strength = np.array([0.3, 0.2, 0.1], np.float32)
    evidence = Evidence(
        "q",
        name,
        heat=np.eye(4, dtype=np.float32),
        match=Match("q", name, 20, np.eye(3), points),
        query_heat=np.eye(4, dtype=np.float32),
        tokens=TokenMatches(
            "q", name, np.array([[0, 2], [1, 1], [2, 0]]), strength, strength, boxes, boxes, boxes, boxes
        ),
    )
    # The middle half of the image in both directions, so that the overlay's place is known.
    size = (400 + 800 * rank, 600)
    box = (size[0] * 0.25, 150.0, size[0] * 0.75, 450.0)
    hit = Hit(name, Path("photos") / name, 1 / rank, 1 / rank, box, {"label": "y" * 90}, {"late": 0.5})
    return HitView(hit, stripes(size[1] // 2, size[0] // 2), size, evidence)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    query = QueryView("query.jpg", stripes(300, 400), (400, 300), (40.0, 30.0, 360.0, 270.0))
    found = Section(query, [view(rank, name) for rank, name in enumerate(IDS, start=1)], seconds={"late": 0.01})
    file = tmp_path_factory.mktemp("page") / "page.html"
    file.write_text(render_many("Search", [found, Section(query, [], title="Nothing")]), encoding="utf-8")
    return file.as_uri()


def test_cards_are_in_rank_order_and_their_text_is_text(page):
    assert page.locator(".card h3").all_inner_texts() == IDS
    places = [card.bounding_box() for card in page.locator(".card").all()]
    order = [(place["y"], place["x"]) for place in places]
    assert order == sorted(order)


def test_every_picture_is_decoded(page):
    page.get_by_role("button", name="Explain all answers").click()
    widths = page.locator("img").evaluate_all("all => Promise.all(all.map(i => i.decode().then(() => i.naturalWidth)))")
    assert len(widths) == 2 + 3 * 6
    assert all(width > 0 for width in widths)


def test_the_box_lies_over_the_middle_of_its_picture(page):
    for card in page.locator(".card").all():
        image = card.locator("img").first.bounding_box()
        edge = card.locator(".overlay .edge").bounding_box()
        assert edge["x"] - image["x"] == pytest.approx(image["width"] / 4, abs=4)
        assert edge["y"] - image["y"] == pytest.approx(image["height"] / 4, abs=4)
        assert edge["width"] == pytest.approx(image["width"] / 2, abs=6)
        assert edge["height"] == pytest.approx(image["height"] / 2, abs=6)


def test_boxes_can_be_hidden_by_pointer_and_by_key(page):
    boxes = page.locator(".overlay")
    assert all(box.is_visible() for box in boxes.all())
    page.get_by_label("Show boxes").uncheck()
    assert not any(box.is_visible() for box in boxes.all())
    page.keyboard.press("b")
    assert all(box.is_visible() for box in boxes.all())


def test_shortcuts_can_be_switched_off(page):
    page.get_by_label("Keyboard shortcuts").uncheck()
    page.keyboard.press("b")
    assert page.locator(".overlay").first.is_visible()


def test_explanations_open_and_close_together(page):
    pictures = page.locator(".why figure")
    assert not pictures.first.is_visible()
    page.keyboard.press("w")
    assert all(picture.is_visible() for picture in pictures.all())
    page.get_by_role("button", name="Close all explanations").click()
    assert not any(picture.is_visible() for picture in pictures.all())


@pytest.mark.parametrize("width", [400, 1280])
def test_query_and_answer_stand_side_by_side_where_there_is_room_and_below_each_other_where_not(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.locator("summary").first.click()
    figures = page.locator(".card").first.locator(".why figure:not(.pair)")
    captions = figures.locator("figcaption").all_inner_texts()
    assert [caption.partition(":")[0] for caption in captions] == ["Query", "Answer"] * 2
    places = [figure.bounding_box() for figure in figures.all()]
    for left, right in (places[:2], places[2:]):
        if width == 1280:
            assert left["x"] + left["width"] < right["x"]
            assert left["y"] == right["y"]
        else:
            assert left["x"] == right["x"]
            assert left["y"] + left["height"] < right["y"]
            assert left["width"] > 300, "numbers on a smaller picture could not be read"


def test_j_and_k_walk_through_the_answers(page):
    def focused() -> str:
        return page.evaluate("document.activeElement.dataset.rank")

    walked = []
    for key in "jjjjk":
        page.keyboard.press(key)
        walked.append(focused())
    assert walked == ["1", "2", "3", "3", "2"]


def test_the_query_stays_in_sight_on_a_wide_screen(page):
    page.keyboard.press("w")
    page.evaluate("window.scrollTo(0, 600)")
    assert page.locator(".ask").first.bounding_box()["y"] >= 0


def test_the_page_can_be_read_without_script(chromium, address):
    context = chromium.new_context(java_script_enabled=False, viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(address)
    assert page.locator(".card h3").all_inner_texts() == IDS
    assert page.locator(".chance strong").all_inner_texts() == [">99%", "50%", "33%"]
    assert page.get_by_text("No image shows the same object.").is_visible()
    assert not page.get_by_text("Keyboard shortcuts").is_visible()
    page.locator("summary").first.click()
    assert page.locator(".why figure").first.is_visible()
    page.get_by_label("Show boxes").uncheck()
    assert not page.locator(".overlay").first.is_visible()
    context.close()


@pytest.mark.parametrize("width", [360, 768, 1024, 1920])
def test_nothing_scrolls_sideways(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.keyboard.press("w")
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_the_contrast_of_wcag_aa(page, scheme):
    page.emulate_media(color_scheme=scheme)
    page.keyboard.press("w")
    weak = page.evaluate(CONTRAST)
    assert weak == []


# Text and the nearest opaque background behind it, with the formula of WCAG 2.2; gives those below 4.5.
CONTRAST = """() => {
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (rgb) => rgb.slice(0, 3)
    .map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const background = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const rgba = parse(getComputedStyle(e).backgroundColor);
      if (rgba.length === 3 || rgba[3] === 1) { return rgba; }
    }
    return [255, 255, 255];
  };
  return [...document.body.querySelectorAll("*:not(script)")]
    .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
    .map((e) => {
      const [dark, light] = [parse(getComputedStyle(e).color), background(e)].map(luminance).sort((a, b) => a - b);
      return [e.textContent.trim().slice(0, 30), (light + 0.05) / (dark + 0.05)];
    })
    .filter(([, ratio]) => ratio < 4.5);
}"""
