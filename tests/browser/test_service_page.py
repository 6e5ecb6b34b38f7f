"""The page of `resight serve` in a real Chromium: a process of its own serves eight scenes, to people with a key.

A scene is looked for by a slanted photograph of a part of it, so that the right answer and its box are known.
"""

import base64
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from scenes import QUAD, box_around, draw_scene, look_at, overlap, write_jpeg, write_scenes

from resight.collection import open_collection
from resight.data.sets.folder import walk
from resight.types import ImageRef, Skipped

SCENES = 8
WAIT = 30_000  # milliseconds
WEB = Path(__file__).parents[2] / "src/resight/apps/web"
ROUTES = ("search", "images", "map", "review", "reports", "about")
DROP = """([name, data]) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name, { type: name.endsWith("jpg") ? "image/jpeg" : "" }));
  for (const kind of ["dragenter", "dragover", "drop"]) {
    document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }
}"""

PASTE = """(data) => {
  const transfer = new DataTransfer();
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  transfer.items.add(new File([bytes], "", { type: "image/jpeg" }));
  document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true }));
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """scenes.resight, a query of scene 3, a stranger, two keys and a report."""
    made = tmp_path_factory.mktemp("page")
    write_scenes(made / "scenes", SCENES)
    refs = [ref for ref in walk(made / "scenes") if not isinstance(ref, Skipped)]
    rooms = ("north", "south")
    known = [ImageRef(ref.id, ref.path, None, {"room": rooms[k % 2], "year": 1900 + k}) for k, ref in enumerate(refs)]
    open_collection(made / "scenes.resight").add(known)
    write_jpeg(made / "query.jpg", look_at(draw_scene(3)))
    write_jpeg(made / "stranger.jpg", draw_scene(99))
    (made / "broken.jpg").write_bytes(b"\xff\xd8 this is no image")
    (made / "keys").write_text("curator sesame-of-the-curator\nguest sesame-of-the-guest read\n")
    (made / "reports").mkdir()
    (made / "reports/museum.html").write_text("<!doctype html><html lang=en><title>Museum</title><h1>Museum</h1>")
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    words = ["serve", "scenes.resight", "--port", "0", "--key-file", "keys", "--reports", "reports", "--log", "none"]
    command = [sys.executable, "-m", "resight", *words]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"http://\S+?/", said)
        assert found, said
        yield found[0]
        process.terminate()


@pytest.fixture
def visit(chromium: Any, server: str) -> Iterator[Callable[..., Any]]:
    """Opens the page, signed in; the test fails if a page complained (of more than a `refused` request) or asked
    anybody else."""
    pages: list[Any] = []
    complaints: list[str] = []

    def open_page(
        hash: str = "", *, width: int = 1280, key: str | None = "curator", refused: str = "-", **options: Any
    ) -> Any:
        context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if refused not in message.text else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda sent: complaints.append(sent.url) if not is_own(sent.url) else None)
        if key is not None:
            assert context.request.post(f"{server}api/session", data={"key": f"sesame-of-the-{key}"}).ok
        page.goto(server + hash)
        page.locator("main h1").first.wait_for(timeout=WAIT)
        pages.append(page)
        return page

    def is_own(url: str) -> bool:
        return url.startswith((server, "data:", "blob:"))

    yield open_page
    for page in pages:
        page.context.close()
    assert complaints == []


def drop(page: Any, file: Path) -> None:
    page.evaluate(DROP, [file.name, base64.b64encode(file.read_bytes()).decode()])


def wait_for_answers(page: Any) -> None:
    page.locator(".about-answer").wait_for(timeout=WAIT)


def list_cards(page: Any) -> list[str]:
    return [str(card.get_attribute("data-id")) for card in page.locator(".card[data-id]").all()]


def read_drawn_box(card: Any) -> tuple[float, float, float, float]:
    rect = card.locator("rect.edge")
    x, y, width, height = (float(rect.get_attribute(name)) for name in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def find_violations(page: Any) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {[node['html'][:120] for node in one['nodes']]}" for one in found]


def test_a_key_is_asked_for_and_a_wrong_one_is_refused(visit: Callable[..., Any]) -> None:
    page = visit(key=None, refused="401")
    page.get_by_label("Key").fill("open sesame")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("this key is not known").wait_for(timeout=WAIT)
    assert find_violations(page) == []
    page.get_by_label("Key").fill("sesame-of-the-guest")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Find the very same thing").wait_for(timeout=WAIT)
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
    assert best.locator(".chance strong").inner_text() == ">99%"
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
    page.get_by_text("laid over each other by the matched points").wait_for(timeout=WAIT)
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
    page.locator(".tile", has_text="stranger").get_by_role("checkbox").check()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    page.get_by_text("1 image deleted").first.wait_for(timeout=WAIT)
    page.locator(".tile[data-id]").nth(SCENES - 1).wait_for(timeout=WAIT)
    assert page.locator(".tile", has_text="stranger").count() == 0
    page.wait_for_function("() => document.activeElement.matches('.tile-open')")


def test_a_search_is_done_with_the_keyboard_alone(visit: Callable[..., Any], folder: Path) -> None:
    page = visit()
    page.get_by_role("heading", name="Find the very same thing").wait_for(timeout=WAIT)
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
    page.get_by_text("2 images pass the filters").wait_for(timeout=WAIT)
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
    page.get_by_role("heading", name="Or begin with one of these").wait_for(timeout=WAIT)
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
