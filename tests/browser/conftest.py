"""A real Chromium, and pages that are watched while they are open."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra dev)")
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if path is None:
        pytest.skip("chromium is not installed; set CHROMIUM to its path")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def page(chromium: Any, address: str) -> Iterator[Any]:
    """The page at the module's `address`, open; fails afterwards if it complained or asked for anything but itself."""
    opened = chromium.new_page(viewport={"width": 1440, "height": 900})
    complaints: list[str] = []
    requests: list[str] = []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("request", lambda request: requests.append(request.url))
    opened.goto(address)
    yield opened
    opened.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith("data:")] == [address]
