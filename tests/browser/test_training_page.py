"""The curves of a training in a real browser, while it runs."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.browsing import WAIT, find_violations
from support.scenes import write_scenes
from support.serving import serve

from resight.collection import open_collection


def write_steps(file: Path, first: int, last: int) -> None:
    with file.open("a") as opened:
        for step in range(first, last + 1):
            line = {"step": step, "epoch": (step - 1) // 5, "loss": 8 / step, "rate": 0.01, "seconds": float(step)}
            opened.write(json.dumps(line) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("training")
    write_scenes(made / "scenes", 2)
    open_collection(made / "scenes.resight").add(made / "scenes")
    (made / "runs" / "moon" / "all").mkdir(parents=True)
    curves = made / "runs" / "moon" / "all" / "curves.jsonl"
    write_steps(curves, 1, 4)
    with curves.open("a") as opened:
        opened.write(json.dumps({"step": 4, "epoch": 0, "validation": 0.5, "seconds": 5.0}) + '\n{"step": 5, "los')
    (made / "runs" / "bad" / "all").mkdir(parents=True)
    bad = made / "runs" / "bad" / "all" / "curves.jsonl"
    write_steps(bad, 1, 1)
    bad.write_text(bad.read_text() + json.dumps({**json.loads(bad.read_text()), "step": 2, "loss": math.nan}) + "\n")
    return made


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with serve(folder / "scenes.resight", options=("--training", str(folder / "runs"))) as server:
        yield server.address


def test_the_service_lists_trainings_and_gives_whole_lines(address: str) -> None:
    assert {training["name"] for training in httpx.get(f"{address}/api/trainings").json()} == {"moon/all", "bad/all"}
    curves = httpx.get(f"{address}/api/trainings/curves", params={"name": "moon/all"}).json()
    assert (curves["steps"], curves["losses"]) == ([1, 2, 3, 4], [8, 4, pytest.approx(8 / 3), 2])
    assert (curves["validated"], curves["validations"], curves["epoch"]) == ([4], [0.5], 1)
    bad = httpx.get(f"{address}/api/trainings/curves", params={"name": "bad/all"}).json()
    assert bad["losses"] == [8, None]
    assert httpx.get(f"{address}/api/trainings/curves", params={"name": "../scenes.resight"}).status_code == 404


def test_the_curve_grows_while_the_page_is_open(chromium: Any, address: str, folder: Path) -> None:
    page = chromium.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{address}/")
    page.get_by_role("link", name="Training").click()
    page.get_by_role("link", name="moon/all").click()
    page.get_by_role("img", name="Loss: 8 at step 1, 2 at step 4").wait_for(timeout=WAIT)
    assert page.get_by_role("img", name="Validation").count() == 1
    assert len(page.locator(".curve polyline").first.get_attribute("points").split()) == 4
    assert find_violations(page) == []
    curves = folder / "runs" / "moon" / "all" / "curves.jsonl"
    curves.write_text("".join(f"{line}\n" for line in curves.read_text().splitlines()[:-1]))
    write_steps(curves, 5, 8)
    page.get_by_role("img", name="Loss: 8 at step 1, 1 at step 8").wait_for(timeout=WAIT)
    page.get_by_text("Epoch 2, step 8, loss 1, 8 s").wait_for(timeout=WAIT)
    page.close()
    assert complaints == []
