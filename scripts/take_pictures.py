"""Take the six pictures of docs/guides/page.md with Chromium, from a server over the photographs of the demo.

    python scripts/take_pictures.py [FOLDER]

Writes FOLDER/*.webp (default: docs/assets/page). Needs the extras demo and dev, and Chromium.
"""

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from resight.apps.cli.demo import find_photos, gather_photos
from resight.audit.dedup.find_duplicates import find_duplicates
from resight.audit.review.review import Review
from resight.collection import open_collection

LARGEST = 120_000  # bytes of a picture
QUERY = "campus/holdout/P1070492.png"
PICTURES = Path(__file__).resolve().parents[1] / "docs" / "assets" / "page"
# Images outside the window load only when they come near it: ask for all of them, and wait until each can be drawn.
ALL_LOADED = """async () => {
    const images = [...document.querySelectorAll("img")];
    images.forEach((image) => (image.loading = "eager"));
    if (!images.every((image) => image.complete && image.naturalWidth > 0)) return false;
    await Promise.all(images.map((image) => image.decode()));
    return true;
}"""


def main(target: Path) -> None:
    photos = find_photos()
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        collection = open_collection(Path(scratch) / "photos.resight")
        collection.add(gather_photos(photos))
        pairs = find_duplicates(collection, work=Path(scratch) / "work").pairs
        review = Review.create(Path(scratch) / "review", "Duplicates", collection.path, collection.path, pairs)
        path = os.environ.get("CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--headless=new", "--no-sandbox"])
        with serve(collection.path, review.folder) as address:
            wide = browser.new_page(viewport={"width": 1280, "height": 800})
            take_answers(wide, address, photos, target)
            narrow = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme="dark")
            take_narrow(narrow, address, photos, target)
            take_review(browser.new_page(viewport={"width": 1280, "height": 800}), address, target)
        browser.close()


def take_answers(page: Any, address: str, photos: Path, target: Path) -> None:
    page.goto(address)
    page.locator(".samples img").nth(11).wait_for()
    save(page, target / "welcome.webp")
    page.set_input_files("input[type=file]", photos / QUERY)
    settle(page)
    save(page, target / "search.webp")
    page.locator(".card-open").first.click()
    page.locator(".why-facts h3").first.wait_for()
    save(page, target / "why.webp")
    page.keyboard.press("Escape")
    page.emulate_media(color_scheme="dark")
    page.set_input_files("input[type=file]", photos / "building2-1.png")
    settle(page)
    page.locator(".card-open").nth(1).click()
    page.locator(".why-facts h3").first.wait_for()
    page.get_by_role("button", name="Swipe").click()
    save(page, target / "swipe.webp")


def take_narrow(page: Any, address: str, photos: Path, target: Path) -> None:
    page.goto(address)
    page.locator("main h1").wait_for()
    page.set_input_files("input[type=file]", photos / QUERY)
    settle(page)
    page.locator(".answers").scroll_into_view_if_needed()
    wait_for_images(page)
    page.evaluate("() => scrollTo(0, document.querySelector('.answers').offsetTop - 110)")
    save(page, target / "phone.webp")


def take_review(page: Any, address: str, target: Path) -> None:
    page.goto(f"{address}#/review/review")
    page.get_by_role("textbox").fill("Ada")
    page.keyboard.press("Enter")
    page.wait_for_function("() => Number(document.querySelector('[data-pair]')?.dataset.evidence) > 0")
    save(page, target / "review.webp")


def settle(page: Any) -> None:
    """Wait until the final answer is shown."""
    page.locator(".about-answer").wait_for()


def wait_for_images(page: Any) -> None:
    """Wait until every image has loaded, is decoded, and the cards have come to rest."""
    page.wait_for_load_state("networkidle")
    page.wait_for_function(ALL_LOADED)
    page.wait_for_timeout(600)


def save(page: Any, file: Path) -> None:
    """Write the best quality that stays within the limit."""
    wait_for_images(page)
    shot = Image.open(io.BytesIO(page.screenshot()))
    for quality in range(85, 30, -5):
        shot.save(file, quality=quality, method=6)
        if file.stat().st_size < LARGEST:
            print(f"{file}: {file.stat().st_size:,} bytes at quality {quality}")
            return
    raise SystemExit(f"{file} does not fit into {LARGEST:,} bytes")


@contextmanager
def serve(collection: Path, review: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "resight", "serve", str(collection), "--review", str(review)]
    with subprocess.Popen([*command, "--port", "0", "--log", "none"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"http://\S+?/", process.stdout.readline())
        assert found, "the server did not say where it listens"
        yield found[0]
        process.terminate()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES)
