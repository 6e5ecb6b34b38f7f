"""A real Chromium, and pages that are watched while they are open."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.browsing import WAIT
from support.scenes import draw_scene, look_at, write_jpeg, write_scenes

from resight.collection import open_collection
from resight.data.folder_walk import walk
from resight.types import ImageRef, Skipped

SCENES = 8  # that the service of `server` has
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
    (made / "keys").chmod(0o600)
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
