"""The other views of the page, and what holds for all of them: adding, the keyboard, refusals, axe, widths, weight."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from support.browsing import WAIT, drop, find_violations, list_cards, wait_for_answers

SCENES = 8
WEB = Path(__file__).parents[2] / "src/resight/apps/web"
ROUTES = ("search", "images", "map", "review", "reports", "about")


def test_images_are_added_by_dropping_edited_and_deleted(visit: Callable[..., Any], folder: Path) -> None:
    page = visit("#/images")
    page.locator(".tile[data-id]").nth(SCENES - 1).wait_for(timeout=WAIT)
    page.set_input_files("input[type=file]", [folder / "stranger.jpg", folder / "broken.jpg"])
    page.locator(".job", has_text="1 image added").wait_for(timeout=WAIT)
    assert "broken.jpg" in page.locator(".skipped").inner_text()
    page.locator(".tile").nth(SCENES).wait_for(timeout=WAIT)
    added = page.locator(".tile", has_text="stranger")
    added.locator(".tile-open").click()
    page.get_by_role("button", name="Add one").click()
    page.get_by_label("Name").last.fill("year")
    page.get_by_placeholder("value").last.fill("2001")
    page.get_by_role("button", name="Save attributes").click()
    page.get_by_text("Attributes stored").first.wait_for(timeout=WAIT)
    page.keyboard.press("Escape")
    shown = page.request.get(page.url.split("#")[0] + "api/images?where=year%3E2000").json()
    assert [image["attributes"]["year"] for image in shown["images"]] == [2001]
    check_that_untouched_values_stay(page, shown["images"][0]["id"])
    page.locator(".tile", has_text="stranger").get_by_role("checkbox").check()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    page.get_by_text("1 image deleted").first.wait_for(timeout=WAIT)
    page.locator(".tile[data-id]").nth(SCENES - 1).wait_for(timeout=WAIT)
    assert page.locator(".tile", has_text="stranger").count() == 0
    page.wait_for_function("() => document.activeElement.matches('.tile-open')")


def test_a_search_is_done_with_the_keyboard_alone(visit: Callable[..., Any], folder: Path) -> None:
    page = visit()
    page.get_by_role("heading", name="Find the same object").wait_for(timeout=WAIT)
    page.keyboard.press("/")
    assert page.evaluate("() => document.activeElement.innerText").startswith("Drop an image, or choose one")
    page.set_input_files("input[type=file]", folder / "query.jpg")  # what Enter opens belongs to the system
    wait_for_answers(page)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_text("agree on one plane").wait_for(timeout=WAIT)
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowRight")
    second = list_cards(page)[1]
    page.keyboard.press("s")
    page.wait_for_url(re.compile(f"id={re.escape(second)}"))
    page.locator(".ask p", has_text=second).wait_for(timeout=WAIT)  # the answers before it are gone by now
    wait_for_answers(page)
    page.keyboard.press("?")
    assert page.get_by_role("dialog", name="Keyboard shortcuts").is_visible()
    page.keyboard.press("Escape")
    for _ in range(40):  # the skip link, the navigation, the query, the filters and every answer are reached by Tab
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.matches('.card-open')"):
            break
    assert page.evaluate("() => document.activeElement.matches('.card-open')")


def test_the_map_shows_the_images_and_an_area_becomes_a_filter(visit: Callable[..., Any]) -> None:
    page = visit("#/map")
    page.get_by_role("heading", name="8 images in view").wait_for(timeout=WAIT)
    page.get_by_role("button", name="Choose an area").click()
    for label, value in (("Latitude", "2.5"), ("Longitude", "10"), ("Radius in metres", "100000")):
        page.get_by_label(label).fill(value)
    page.get_by_role("button", name="Browse here").click()
    page.get_by_text("2 images match the filters").wait_for(timeout=WAIT)
    shown = [tile.get_attribute("data-id") for tile in page.locator(".tile[data-id]").all()]
    assert shown == ["scene_02.jpg", "scene_03.jpg"]  # at latitudes 2 and 3; a degree is 111 km


def test_a_format_that_browsers_do_not_show_is_shown_by_the_server(visit: Callable[..., Any], folder: Path) -> None:
    Image.open(folder / "query.jpg").save(folder / "query.tif")
    page = visit()
    page.set_input_files("input[type=file]", folder / "query.tif")
    wait_for_answers(page)
    assert list_cards(page)[0] == "scene_03.jpg"
    shown = page.locator(".editor img")
    assert shown.get_attribute("src").startswith("data:image/webp")
    assert shown.evaluate("(image) => image.naturalWidth") > 0


def test_a_refused_search_says_what_was_expected(visit: Callable[..., Any]) -> None:
    page = visit("#/search?id=scene_03.jpg&where=year~1900", refused="400")
    page.get_by_text("cannot read the condition").wait_for(timeout=WAIT)
    assert "name=value" in page.locator(".problem").inner_text()  # what was expected


def test_a_busy_server_is_asked_again_after_a_countdown(visit: Callable[..., Any], folder: Path) -> None:
    page = visit(refused="429")
    busy = [{"status": 429, "headers": {"Retry-After": "2"}, "json": {"error": {"problem": "too many"}}}]
    page.route("**/api/search/stages", lambda route: route.fulfill(**busy.pop()) if busy else route.continue_())
    drop(page, folder / "query.jpg")
    page.get_by_text("trying again in 1 s").wait_for(timeout=WAIT)
    wait_for_answers(page)
    assert not page.locator("#banner").is_visible()
    assert list_cards(page)[0] == "scene_03.jpg"


def test_a_server_that_went_away_is_waited_for(visit: Callable[..., Any], folder: Path) -> None:
    page = visit(refused="ERR_")
    page.get_by_role("heading", name="Or start with one of these").wait_for(timeout=WAIT)
    page.context.set_offline(True)
    drop(page, folder / "query.jpg")
    page.get_by_text("The server does not answer").wait_for(timeout=WAIT)
    page.context.set_offline(False)
    wait_for_answers(page)
    assert not page.locator("#banner").is_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_passes_axe(visit: Callable[..., Any], theme: str) -> None:
    page = visit("#/search?id=scene_03.jpg&where=year%3E1901&box=100,100,300,300", color_scheme=theme)
    wait_for_answers(page)
    assert find_violations(page) == []
    page.locator(".card-open").first.click()
    page.locator(".why-facts h3").first.wait_for(timeout=WAIT)
    assert find_violations(page) == []
    page.keyboard.press("Escape")
    for route in ROUTES:
        page.goto(page.url.split("#")[0] + f"#/{route}")
        page.locator(f".view-{route} h1").first.wait_for(timeout=WAIT)
        page.wait_for_load_state("networkidle")
        assert find_violations(page) == [], route
    page.goto(page.url.split("#")[0] + "#/images")
    page.locator(".tile-open").first.click()
    page.get_by_role("dialog").get_by_role("heading", name="Attributes").wait_for(timeout=WAIT)
    assert find_violations(page) == []


@pytest.mark.parametrize("width", [380, 820, 1280, 1920])
def test_nothing_is_wider_than_the_screen(visit: Callable[..., Any], width: int) -> None:
    page = visit("#/search?id=scene_03.jpg&box=100,100,300,300", width=width)
    wait_for_answers(page)
    for route in (None, *ROUTES):
        if route is not None:
            page.goto(page.url.split("#")[0] + f"#/{route}")
            page.locator(f".view-{route} h1").first.wait_for(timeout=WAIT)
        wide, there = page.evaluate("() => [document.body.scrollWidth, document.documentElement.clientWidth]")
        assert wide <= there, route


def test_the_page_weighs_less_than_300_kilobytes() -> None:
    assert sum(file.stat().st_size for file in WEB.rglob("*") if file.is_file()) < 300_000


def check_that_untouched_values_stay(page: Any, name: str) -> None:
    given = {"code": "007", "said": "true", "notes": "two\nlines", "year": 2001}
    address = page.url.split("#")[0] + f"api/image?id={name}"
    job = page.request.put(address, multipart={"attributes": json.dumps(given)}).json()["job"]
    events = page.url.split("#")[0] + f"api/jobs/{job['id']}/events"
    page.request.get(events)  # ends with the job
    page.reload()
    page.locator(".tile", has_text="stranger").locator(".tile-open").click()
    page.get_by_label("Value of year").fill("2002")
    page.get_by_role("button", name="Save attributes").click()
    page.get_by_text("Attributes stored").first.wait_for(timeout=WAIT)
    assert page.request.get(address).json()["attributes"] == {**given, "year": 2002}
    page.keyboard.press("Escape")
