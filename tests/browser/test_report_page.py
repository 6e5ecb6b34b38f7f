"""The page of a report in a real browser: figures, plots, strata, pictures of queries and the map, on any screen."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from resight.evaluate.comparison import compare
from resight.evaluate.evaluation import Evaluation, Fact, Row
from resight.evaluate.pages.evaluation_page import render
from resight.evaluate.properties import Property
from resight.evaluate.results import (
    AnsweredImage,
    EmbeddingMap,
    GeoPosition,
    JudgedQuery,
    Point,
    PositiveRanks,
    RunResult,
)
from resight.evaluate.strata import break_down
from resight.evaluate.summary import summarise
from resight.types import Branch, Choice, Recipe

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra dev)")

METRICS = ("recall@1", "ap")
QUERIES = 12


def make_run(k: int, dataset: str, picture: Path) -> RunResult:
    """Query i has its positive at rank i // 3 + 1, or first where k is large; its box is the left half.

    Query i and its positive were taken i × 111 m north of the first.
    """
    queries = []
    for number in range(QUERIES):
        rank = 1 if number < k else number // 3 + 2
        left, middle = (0.0, 0.0, 100.0, 100.0), (50.0, 0.0, 150.0, 100.0)
        answers = [AnsweredImage(f"image {number}", rank, True, 0.9, left, middle, {"late": 0.4}, picture)]
        if rank > 1:
            answers = [AnsweredImage("<b>other</b>", 1, False, 0.3, left, None, {"late": 0.5}, picture), *answers]
        values = {"recall@1": float(rank == 1), "ap": 1 / rank}
        kept = PositiveRanks({f"image {number}": rank - 1}, (), {f"image {number}": 1 / 3})
        queries.append(
            JudgedQuery(
                f"q{number:02d}", "", values, answers[0].id, 0.9, k / 1000, 0.1, {}, kept, tuple(answers), picture
            )
        )
    recipe = Recipe(
        f"tokens k={k}", (Branch(Choice("sift"), Choice("tokens", {"k": k})),), data=Choice(dataset), metrics=METRICS
    )
    bright = Property(
        "brightness", "mean L", {f"q{number:02d}": {f"image {number}": float(number)} for number in range(QUERIES)}
    )
    conventions = {name: f"what {name} means" for name in METRICS}
    points = tuple(
        Point(
            f"image {number}",
            number / QUERIES,
            number % 3 / 2,
            "query" if number % 4 == 0 else "database",
            "ab"[number % 2],
        )
        for number in range(QUERIES)
    )
    result = RunResult(recipe, dataset, 40, METRICS, conventions, tuple(queries), (), 2.0)
    return replace(
        result,
        strata=break_down(queries, [bright], METRICS, 3),
        map=EmbeddingMap("t-SNE", points, QUERIES),
        query_positions={f"q{number:02d}": GeoPosition(52.5 + number / 1000, 13.28, 30.0) for number in range(QUERIES)},
        image_positions={"<b>other</b>": GeoPosition(52.5, 13.28)}
        | {f"image {number}": GeoPosition(52.5 + number / 1000, 13.2801) for number in range(QUERIES)},
    )


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")
    picture = folder / "picture.png"
    Image.fromarray(np.tile(np.arange(200, dtype=np.uint8)[None, :, None], (100, 1, 3))).save(picture)
    evaluations = []
    for dataset in ("walls", "roofs"):
        rows = tuple(
            Row(
                f"tokens k={k}",
                summarise(make_run(k, dataset, picture)),
                {"bytes an image": Fact(100.0 * k, f"{100 * k}")},
            )
            for k in (1, 2, 3, 4, 5, 6, 7, 8, 10)
        )
        evaluations.append(Evaluation("t", rows, metric="ap", ranked=True))
    file = folder / "page.html"
    comparison = compare(evaluations, metric="ap")
    file.write_text(render(comparison.table, comparison), encoding="utf-8")
    return file.as_uri()


def test_every_part_is_there_and_named_in_the_list_of_parts(page):
    assert page.locator("nav a").all_inner_texts() == [
        "Figures", "Plots", "Strata", "Queries", "Places", "Map", "Meaning", "How it was made",
    ]  # fmt: skip
    for anchor in page.locator("nav a").evaluate_all("all => all.map(a => a.hash)"):
        assert page.locator(anchor).is_visible()
    assert page.locator(".tile .beside").all_inner_texts() == ["tokens k=10"] * 2


@pytest.mark.parametrize("width", [360, 420, 768, 1280, 1920])
def test_nothing_but_tables_scrolls_sideways(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_pictures_are_decoded_and_both_boxes_lie_where_they_should(page):
    widths = page.locator("img").evaluate_all("all => Promise.all(all.map(i => i.decode().then(() => i.naturalWidth)))")
    assert len(widths) > 20
    assert set(widths) == {200}
    frame = page.locator(".frame.right").first
    image = frame.locator("img").bounding_box()
    shown, true = (frame.locator(f".{kind}").bounding_box() for kind in ("shown", "truth"))
    assert shown["x"] + shown["width"] / 2 - image["x"] == pytest.approx(image["width"] / 4, abs=3)
    assert true["x"] + true["width"] / 2 - image["x"] == pytest.approx(image["width"] / 2, abs=3)


def test_a_query_says_why_and_its_text_is_text(page):
    worst = page.locator(".query").first
    assert worst.locator("h4").inner_text() == "q10"
    assert worst.locator("header p").inner_text() == (
        "Its positive came at rank 5, with a probability of 0.90. The wrong first answer had late 0.5 against 0.4."
    )
    assert worst.locator(".name").all_inner_texts() == ["q10", "<b>other</b>", "image 10"]


def test_queries_are_on_a_map_and_each_example_says_how_far_off_it_was(page):
    assert page.locator("#places .geo-mark.right").count() == 2 * 10  # on each of two data sets
    assert page.locator("#places .geo-mark.wrong").count() == 2 * 2
    worst = page.locator(".query").first
    worst.locator("summary").first.click()
    assert worst.locator("summary").first.inner_text().replace("\u00a0", " ") == (
        "Answer 1 was taken 1.1 km from the query. Show on the map"
    )
    assert worst.locator(".geo-mark").count() == 3
    assert worst.locator(".geo-map").is_visible()


def test_rows_can_be_sorted_and_filtered_by_keyboard(page):
    def labels() -> list[str]:
        return [text for text in page.locator("#results tbody tr:visible th").all_inner_texts() if text]

    first = labels()
    button = page.locator("#results thead button", has_text="ap").first
    button.focus()
    page.keyboard.press("Enter")
    assert labels()[0] == "tokens k=10"
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert labels() == first
    page.get_by_label("Filter").fill("k=1")
    assert labels() == ["tokens k=1", "tokens k=10"]


def test_intervals_can_be_hidden(page):
    interval = page.locator("#results td.interval small").first
    assert interval.is_visible()
    page.get_by_label("Show intervals").uncheck()
    assert not interval.is_visible()


def test_the_page_can_be_read_without_script(chromium, address):
    context = chromium.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 900})
    plain = context.new_page()
    plain.goto(address)
    assert plain.locator("#results tbody tr").count() == 9
    assert not plain.get_by_label("Filter").is_visible()
    plain.locator("#strata summary").first.click()
    assert plain.locator("#strata table").first.is_visible()
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_the_contrast_of_wcag_aa(page, scheme):
    page.emulate_media(color_scheme=scheme)
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")
    assert page.evaluate(CONTRAST) == []


# Text and what is behind it (the mark on a map that it is written into, else the nearest opaque background), with the
# formula of WCAG 2.2; gives those below 4.5.
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
  return [...document.body.querySelectorAll("*:not(script):not(title)")]
    .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
    .map((e) => {
      const style = getComputedStyle(e);
      const ink = parse(e.closest("svg") ? style.fill : style.color);
      const shape = e.closest(".geo-mark") && e.previousElementSibling;
      const behind = shape ? parse(getComputedStyle(shape).fill) : background(e);
      const [dark, light] = [ink, behind].map(luminance).sort((a, b) => a - b);
      return [e.textContent.trim().slice(0, 30), (light + 0.05) / (dark + 0.05)];
    })
    .filter(([, ratio]) => ratio < 4.5);
}"""
