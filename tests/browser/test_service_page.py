"""The page of `resight serve` in a real Chromium: a process of its own serves eight scenes, to people with a key.

A scene is looked for by a slanted photograph of a part of it, so that the right answer and its box are known.
"""

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.browsing import WAIT, drop, find_violations, list_cards, read_drawn_box, wait_for_answers
from support.scenes import QUAD, box_around, overlap

SCENES = 8

PASTE = """(data) => {
  const transfer = new DataTransfer();
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  transfer.items.add(new File([bytes], "", { type: "image/jpeg" }));
  document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true }));
}"""


def test_a_key_is_asked_for_and_a_wrong_one_is_refused(visit: Callable[..., Any]) -> None:
    page = visit(key=None, refused="401")
    page.get_by_label("Key").fill("open sesame")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("Wrong key").wait_for(timeout=WAIT)
    assert find_violations(page) == []
    page.get_by_label("Key").fill("sesame-of-the-guest")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Find the same object").wait_for(timeout=WAIT)
    page.goto(page.url.split("#")[0] + "#/images")
    page.locator(".tile[data-id]").first.wait_for(timeout=WAIT)
    assert page.get_by_role("button", name="Add images").count() == 0  # this key may only read


def test_a_dropped_photograph_finds_its_scene_and_says_where_and_how_sure(
    visit: Callable[..., Any], folder: Path
) -> None:
    page = visit()
    drop(page, folder / "query.jpg")
    wait_for_answers(page)
    best = page.locator(".card[data-id]").first
    assert best.get_attribute("data-id") == "scene_03.jpg"
    assert int(re.sub(r"\D", "", best.locator(".chance strong").inner_text())) >= 90
    assert best.locator(".chance span").first.inner_text() == "very likely"
    assert overlap(read_drawn_box(best), box_around(QUAD)) > 0.9
    assert page.get_by_role("heading", name="1 likely answer among 8 images").count() == 1
    assert len(list_cards(page)) == SCENES


def test_a_pasted_picture_is_searched_with(visit: Callable[..., Any], folder: Path) -> None:
    page = visit()
    page.evaluate(PASTE, base64.b64encode((folder / "query.jpg").read_bytes()).decode())
    wait_for_answers(page)
    assert list_cards(page)[0] == "scene_03.jpg"


def test_the_shortlist_comes_first_and_is_marked_as_not_verified(visit: Callable[..., Any], folder: Path) -> None:
    page = visit()
    page.evaluate(
        """() => new MutationObserver(() => {
          const text = document.querySelector(".answers")?.innerText ?? "";
          if (text.includes("not verified yet") && !document.querySelector(".about-answer")) { window.early = text; }
        }).observe(document.body, { subtree: true, childList: true })"""
    )
    drop(page, folder / "query.jpg")
    wait_for_answers(page)
    early = page.evaluate("() => window.early")
    assert "scene_03" in early
    assert "%" not in early


def test_the_explanation_shows_lines_heat_parts_and_facts(visit: Callable[..., Any], folder: Path) -> None:
    page = visit()
    drop(page, folder / "query.jpg")
    wait_for_answers(page)
    page.locator(".card-open").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("agree on one plane (homography)").wait_for(timeout=WAIT)
    assert dialog.locator(".lines line:not(.casing)").count() > 10
    assert dialog.locator("canvas.heat").count() == 2
    assert not dialog.locator("canvas.heat").first.is_visible()
    page.keyboard.press("h")
    page.keyboard.press("p")
    assert dialog.locator("canvas.heat").first.is_visible()
    assert (
        dialog.locator(".pane-query .parts text").all_inner_texts()
        == dialog.locator(".pane-image .parts text").all_inner_texts()
    )
    page.keyboard.press("b")
    assert not dialog.locator(".pane-query").is_visible()
    page.keyboard.press("b")
    before = dialog.locator(".pane-image .layer").bounding_box()["width"]
    page.keyboard.press("+")
    assert dialog.locator(".pane-image .layer").bounding_box()["width"] == pytest.approx(1.5 * before, rel=1e-3)
    page.keyboard.press("ArrowRight")
    dialog.get_by_text("2 of 8", exact=True).wait_for(timeout=WAIT)
    page.keyboard.press("Escape")
    assert dialog.count() == 0
    assert page.evaluate("() => document.activeElement.closest('.card').dataset.id") == "scene_03.jpg"


def test_the_query_lies_on_the_answer_when_the_two_are_swiped(visit: Callable[..., Any], folder: Path) -> None:
    page = visit()
    drop(page, folder / "query.jpg")
    wait_for_answers(page)
    page.locator(".card-open").first.click()
    page.get_by_text("aligned using matched points").wait_for(timeout=WAIT)
    page.get_by_role("button", name="Swipe").click()
    corners = page.evaluate(
        """() => {
          const layer = document.querySelector(".pane-image .layer").getBoundingClientRect();
          const laid = document.querySelector(".cover img").getBoundingClientRect();
          const scale = layer.width / 480;
          const at = (x, y) => [(x - layer.left) / scale, (y - layer.top) / scale];
          return [...at(laid.left, laid.top), ...at(laid.right, laid.bottom)];
        }"""
    )
    assert corners == pytest.approx(box_around(QUAD), abs=4)


def test_a_box_is_drawn_moved_by_keys_and_kept_in_the_address(visit: Callable[..., Any]) -> None:
    page = visit("#/search?id=scene_03.jpg")
    wait_for_answers(page)
    area = page.locator(".editor").bounding_box()
    page.mouse.move(area["x"] + 0.25 * area["width"], area["y"] + 0.25 * area["height"])
    page.mouse.down()
    page.mouse.move(area["x"] + 0.75 * area["width"], area["y"] + 0.75 * area["height"], steps=3)
    page.mouse.up()
    page.wait_for_url(re.compile("box=120%2C90%2C360%2C270"))
    assert [page.get_by_label(side, exact=True).input_value() for side in ("Left", "Bottom")] == ["120", "270"]
    wait_for_answers(page)
    page.locator(".box-frame").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowDown")
    page.wait_for_url(re.compile("box=125%2C90%2C365%2C275"))
    page.get_by_label("Top", exact=True).fill("60")
    page.keyboard.press("Tab")
    page.wait_for_url(re.compile("box=125%2C60%2C365%2C275"))
    page.get_by_role("button", name="Clear the box").click()
    page.wait_for_url(re.compile(r"id=scene_03\.jpg$"))
    wait_for_answers(page)


def test_filters_come_from_the_collection_and_a_link_brings_them_back(visit: Callable[..., Any]) -> None:
    page = visit("#/search?id=scene_03.jpg")
    wait_for_answers(page)
    page.get_by_text("Filter", exact=True).click()
    page.get_by_label("Attribute").select_option("room")
    page.locator(".filter-value select").select_option("north")
    page.get_by_role("button", name="Add the filter").click()
    page.get_by_text("room is north").wait_for(timeout=WAIT)
    wait_for_answers(page)
    north = [f"scene_0{k}.jpg" for k in (0, 2, 4, 6)]
    assert sorted(list_cards(page)) == north
    again = visit(page.url.split("/", 3)[3])
    wait_for_answers(again)
    assert sorted(list_cards(again)) == north
    again.get_by_role("button", name="Remove the filter room is north").click()
    again.wait_for_url(re.compile(r"jpg$"))
    wait_for_answers(again)
    assert len(list_cards(again)) == SCENES - 1  # all but the image that is asked with


def test_answers_are_saved_as_csv_and_json(visit: Callable[..., Any], folder: Path) -> None:
    page = visit()
    drop(page, folder / "query.jpg")
    wait_for_answers(page)
    saved = {}
    for words in ("Answers as CSV", "Answers as JSON"):
        page.get_by_text("Export", exact=True).click()
        with page.expect_download() as download:
            page.get_by_role("button", name=words).click()
        saved[words] = Path(download.value.path()).read_text()
    lines = saved["Answers as CSV"].splitlines()
    assert lines[0] == "rank,id,probability,score,x0,y0,x1,y1,located_by"
    assert lines[1].startswith("1,scene_03.jpg,0.9")
    assert json.loads(saved["Answers as JSON"])["hits"][0]["id"] == "scene_03.jpg"
