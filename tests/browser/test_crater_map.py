"""The map of craters in a real Chromium: their globe, the mosaic beneath, and linked query, answers and lists."""

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image
from support.browsing import WAIT, find_violations, wait_for_answers
from support.craters import write_craters

from resight.collection import open_collection

CRATERS = 9
MANY = 5000
SLOW = (
    100  # milliseconds of processor time per frame, without a graphics card; other work on the machine does not count
)
STEPS = 12
FRAMES = """async ([steps]) => {
  const canvas = document.querySelector(".map-canvas canvas");
  for (let step = 0; step < steps; step++) {
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: step % 2 ? "ArrowLeft" : "+", bubbles: true }));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  }
}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Nine drawn craters along the equator, over a mosaic that is dark in the west and bright in the east."""
    folder = tmp_path_factory.mktemp("globe")
    open_collection(folder / "moon.resight", "tokens").add(write_craters(folder / "crops"))
    bright = np.repeat(np.linspace(20, 235, 360).astype(np.uint8)[None], 180, axis=0)
    Image.fromarray(bright).save(folder / "mosaic.png")
    words = ["serve", "moon.resight", "--port", "0", "--map", "mosaic.png", "--log", "none"]
    command = [sys.executable, "-m", "resight", *words]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"http://\S+?/", said)
        assert found, said
        with urllib.request.urlopen(f"{found[0]}api/health", timeout=120) as health:  # the first answer waits for all
            assert health.status == 200
        yield found[0]
        process.terminate()


def open_map(visit: Callable[..., Any], hash: str = "#/map", **options: Any) -> Any:
    page = visit(hash, key=None, **options)
    page.locator(".map-list .map-entry").first.wait_for(timeout=WAIT)
    return page


def test_answers_and_query_are_marked_and_lead_to_their_images(visit: Callable[..., Any]) -> None:
    page = visit("#/search?id=crater_0", key=None)
    wait_for_answers(page)
    page.get_by_role("link", name="Show the answers on the map").click()
    answers = page.locator(".map-answers .map-entry")
    answers.first.wait_for(timeout=WAIT)
    ranks = page.locator(".map-rank").all_inner_texts()
    assert ranks[0] == "Q"
    assert ranks[1:] == [str(number) for number in range(1, len(ranks))]
    answers.nth(1).hover()
    page.locator(".map-entry.pointed").first.wait_for(timeout=WAIT)
    answers.nth(1).click()
    page.get_by_role("dialog").get_by_role("heading", name="Attributes").wait_for(timeout=WAIT)
    assert page.get_by_role("dialog").get_by_role("link", name="Find similar").is_visible()


def test_a_circle_is_found_by_pointer_and_keyboard(visit: Callable[..., Any]) -> None:
    page = visit("#/search?id=crater_3", key=None)
    wait_for_answers(page)
    page.get_by_role("link", name="Show the answers on the map").click()
    page.locator(".map-answers .map-entry").first.wait_for(timeout=WAIT)
    page.locator(".map-canvas canvas").focus()
    page.keyboard.press("n")  # the query, which moves to the middle
    assert page.locator(".map-answers .map-entry.pointed .map-rank").inner_text() == "Q"
    area = page.locator(".map-canvas canvas").bounding_box()
    page.mouse.move(area["x"] + 4, area["y"] + 4)
    page.mouse.move(area["x"] + area["width"] / 2, area["y"] + area["height"] / 2)
    page.locator(".map-answers .map-entry.pointed").wait_for(timeout=WAIT)
    page.mouse.click(area["x"] + area["width"] / 2, area["y"] + area["height"] / 2)
    page.get_by_role("dialog", name="crater_3").wait_for(timeout=WAIT)
    page.keyboard.press("Escape")
    page.locator(".map-canvas canvas").focus()
    page.keyboard.press("n")
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("heading", name="Attributes").wait_for(timeout=WAIT)


def test_longitudes_count_as_the_catalogue_does_and_as_the_reader_likes(visit: Callable[..., Any]) -> None:
    page = open_map(visit)
    entry = page.locator(".map-list .map-entry", has_text="100 km")  # crater 7, at 280° E in the catalogue
    assert "280.00° E" in entry.inner_text()
    page.get_by_role("button", name="Longitude 0° to 360° E").click()
    page.get_by_role("button", name="Longitude 180° W to 180° E").wait_for(timeout=WAIT)
    page.locator(".map-list .map-entry", has_text="80.00° W").wait_for(timeout=WAIT)


def test_the_mosaic_lies_beneath_the_circles(visit: Callable[..., Any]) -> None:
    """Dark at the west end of the mosaic (180° W) and bright at its east end; from 0° the seam is in the middle."""
    page = open_map(visit)
    read = """async ([x]) => {
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      const canvas = document.querySelector(".map-canvas canvas");
      return [...canvas.getContext("2d").getImageData(x * canvas.width, canvas.height * 0.42, 1, 1).data];
    }"""
    middle = page.locator(".map-canvas canvas")
    middle.focus()
    before, behind = (page.evaluate(read, [x])[0] for x in (0.3, 0.7))
    assert before > 150 and behind < 110  # 90° E is bright, 90° W is dark
    assert page.evaluate(read, [0.3])[3] == 255


def test_thousands_of_craters_stay_smooth(visit: Callable[..., Any], chromium: Any) -> None:
    page = visit("#/about", key=None)
    generator = np.random.default_rng(1)
    body = {
        "images": [[f"crater_{k % 8}"] for k in range(MANY)],
        "labels": [str(k) for k in range(MANY)],
        "lats": generator.uniform(-80, 80, MANY).round(2).tolist(),
        "lons": generator.uniform(-180, 180, MANY).round(2).tolist(),
        "diameters_km": np.sort(generator.uniform(20, 200, MANY))[::-1].round(1).tolist(),
        "radius_km": 1737.4,
        "total": MANY,
        "cut": False,
        "mosaic": {"west": -180, "south": -90, "east": 180, "north": 90},
    }
    page.route("**/api/collections/craters*", lambda route: route.fulfill(json=body))
    page.goto(page.url.split("#")[0] + "#/map")
    page.get_by_role("heading", name=f"{MANY:,} craters in view").wait_for(timeout=WAIT)
    before = count_milliseconds(chromium)
    page.evaluate(FRAMES, [STEPS])
    spent = (count_milliseconds(chromium) - before) / STEPS
    print(json.dumps({"craters": MANY, "processor time per frame, ms": round(spent, 1)}))
    assert spent < SLOW


def count_milliseconds(chromium: Any) -> float:
    """Processor time of all of Chromium's processes so far."""
    session = chromium.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return 1000 * sum(float(process["cpuTime"]) for process in processes)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_map_passes_axe_and_fits_the_screen(visit: Callable[..., Any], theme: str, width: int) -> None:
    page = visit("#/search?id=crater_0", key=None, width=width, color_scheme=theme)
    wait_for_answers(page)
    page.get_by_role("link", name="Show the answers on the map").click()
    page.locator(".map-list .map-entry").first.wait_for(timeout=WAIT)
    page.locator(".map-answers .map-entry").first.focus()
    assert find_violations(page) == []
    wide, there = page.evaluate("() => [document.body.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= there


def test_without_a_mosaic_there_is_a_graticule(visit: Callable[..., Any], server: str) -> None:
    page = visit("#/about", key=None)
    answer = page.request.get(f"{server}api/collections/craters").json()
    assert answer["mosaic"] == {"west": -180, "south": -90, "east": 180, "north": 90}
    assert [len(images) for images in answer["images"]] == [1] * CRATERS
    page.route("**/api/collections/craters*", lambda route: route.fulfill(json={**answer, "mosaic": None}))
    page.goto(page.url.split("#")[0] + "#/map")
    page.get_by_role("heading", name=f"{CRATERS} craters in view").wait_for(timeout=WAIT)
    assert page.locator(".map-canvas.pictured").count() == 0
