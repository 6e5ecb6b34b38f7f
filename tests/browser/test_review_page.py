"""The review page in a real browser, against a real server that is killed in the middle.

One server and one review serve all tests: each test is a reviewer of its own, and reviewers know nothing of each other.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from support.scenes import draw_scene, look_at, write_jpeg, write_scenes

from resight.audit.dedup.pairs import Pair
from resight.audit.review.review import Review
from resight.collection import open_collection

PAIRS = 36
WAIT = 30_000  # milliseconds


class Server:
    """`resight review` as a process of its own, on one port for its whole life."""

    def __init__(self, review: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._words = ["review", str(review), "--port", str(self.port)]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "resight", *self._words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{self.address}/api/health", timeout=2).close()
                return
            except OSError:
                time.sleep(0.1)
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        """Like a power cut: nothing is flushed or said."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


@pytest.fixture(scope="module")
def collections(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Six scenes, and a view of each."""
    folder = tmp_path_factory.mktemp("reviewed")
    write_scenes(folder / "scenes", 6)
    (folder / "views").mkdir()
    for seed in range(6):
        write_jpeg(folder / "views" / f"view_{seed:02}.jpg", look_at(draw_scene(seed)))
    for name in ("scenes", "views"):
        open_collection(folder / f"{name}.resight", "sift").add(folder / name)
    return folder / "views.resight", folder / "scenes.resight"


@pytest.fixture(scope="module")
def review(collections: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Review:
    """Every view with every scene; those of the same scene are the least certain, so that one of them comes first."""
    pairs = [
        Pair(f"view_{a:02}.jpg", f"scene_{b:02}.jpg", "same", 0.6 if a == b else 0.9 + 0.01 * ((a + b) % 7))
        for a in range(6)
        for b in range(6)
    ]
    return Review.create(tmp_path_factory.mktemp("review") / "leaks", "Leaks of the scenes", *collections, pairs)


@pytest.fixture(scope="module")
def server(review: Review) -> Iterator[Server]:
    made = Server(review.folder)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """The reviewer's: that of the test."""
    return str(request.node.name)[-40:]


@pytest.fixture
def reviewer(chromium: Any, server: Server, name: str) -> Iterator[Any]:
    """The page of the review, with a name given and the first pair shown."""
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.complaints = []
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.goto(f"{server.address}/#/review/leaks")
    page.get_by_label("Your name or initials").fill(name)
    page.keyboard.press("Enter")
    page.locator("[data-pair]").wait_for(timeout=WAIT)
    yield page
    page.close()
    assert page.complaints == []


def list_votes(review: Review, name: str) -> list[tuple[int, str]]:
    """Pair and verdict, as they lie on disk."""
    lines = [line.split(",") for line in review.export_csv().splitlines()[1:]]
    return [(int(pair), verdict) for pair, _, _, reviewer, verdict, _ in lines if reviewer == name]


def read_pair(page: Any) -> int:
    return int(page.locator("[data-pair]").get_attribute("data-pair"))


def press_and_wait(page: Any, key: str) -> None:
    before = read_pair(page)
    page.keyboard.press(key)
    wait_for_another(page, before)


def wait_for_another(page: Any, before: int) -> None:
    """Until another pair, or the end, is shown."""
    page.wait_for_function(
        "before => !document.querySelector('[aria-busy]') && "
        "document.querySelector('[data-pair]')?.dataset.pair !== String(before)",
        arg=before,
        timeout=WAIT,
    )


def wait_for_evidence(page: Any) -> None:
    page.wait_for_function("() => Number(document.querySelector('[data-pair]').dataset.evidence) > 20", timeout=WAIT)


def test_thirty_votes_by_keyboard_survive_a_killed_server(
    reviewer: Any, server: Server, review: Review, name: str
) -> None:
    keys = {"s": "same", "d": "different", "u": "unsure", " ": "skip"}
    cast = []
    for number in range(30):
        if number in (10, 20):
            server.kill()
            server.start()
        key = list(keys)[number % 4]
        cast.append((read_pair(reviewer), keys[key]))
        press_and_wait(reviewer, key)
        assert list_votes(review, name)[-1] == cast[-1]  # on disk before the next pair shows
    assert list_votes(review, name) == cast


def test_a_vote_that_is_cast_while_the_server_is_away_is_kept(
    reviewer: Any, server: Server, review: Review, name: str
) -> None:
    pair = read_pair(reviewer)
    server.kill()
    reviewer.keyboard.press("s")
    reviewer.get_by_text("The server does not answer").wait_for(timeout=WAIT)
    server.start()
    wait_for_another(reviewer, pair)
    assert list_votes(review, name) == [(pair, "same")]


def test_undo_brings_the_last_pair_back(reviewer: Any, review: Review, name: str) -> None:
    first = read_pair(reviewer)
    press_and_wait(reviewer, "d")
    press_and_wait(reviewer, "z")
    assert read_pair(reviewer) == first
    assert list_votes(review, name) == []


def test_an_undo_whose_answer_is_lost_takes_one_vote_back(reviewer: Any, review: Review, name: str) -> None:
    pairs = []
    for _ in range(2):
        pairs.append(read_pair(reviewer))
        press_and_wait(reviewer, "d")
    sent = []

    def lose(route: Any) -> None:
        sent.append(route.fetch().status)
        route.abort()

    reviewer.route("**/undo", lose, times=1)
    press_and_wait(reviewer, "z")
    assert sent == [200]
    assert read_pair(reviewer) == pairs[1]
    assert list_votes(review, name) == [(pairs[0], "different")]


def test_match_lines_are_drawn_and_can_be_hidden(reviewer: Any) -> None:
    wait_for_evidence(reviewer)
    assert reviewer.locator(".lines line").count() > 20
    reviewer.keyboard.press("l")
    assert reviewer.locator(".lines").is_hidden()
    reviewer.keyboard.press("l")
    assert reviewer.locator(".lines").is_visible()


def test_blinking_lays_one_picture_on_the_other(reviewer: Any) -> None:
    wait_for_evidence(reviewer)
    reviewer.keyboard.press("b")
    cover = reviewer.locator(".cover")
    assert cover.is_visible()
    seen = set()
    for _ in range(12):
        seen.add(cover.evaluate("cover => cover.style.opacity"))
        reviewer.wait_for_timeout(200)
    assert seen == {"0", "1"}
    reviewer.keyboard.press("b")
    assert cover.is_hidden()


def test_pictures_without_a_match_are_laid_whole_on_each_other(reviewer: Any, review: Review, name: str) -> None:
    for number, pair in enumerate(review.pairs, start=1):
        if pair.probability == 0.6:
            review.vote(name, number, "same")
    reviewer.reload()
    reviewer.locator('[data-evidence="0"]').wait_for(timeout=WAIT)
    reviewer.keyboard.press("b")
    over, below = (reviewer.locator(f"{place} img").bounding_box() for place in (".cover", ".pane-image .layer"))
    assert over == pytest.approx(below, abs=1.5)


def test_what_the_machine_thinks_is_told_after_the_vote(reviewer: Any) -> None:
    assert not re.search(r"\d+%", reviewer.locator("main").inner_text())
    press_and_wait(reviewer, "s")
    assert "resight’s estimate: 60%" in reviewer.locator(".review-last").inner_text()


def test_buttons_vote_too_and_the_space_bar_does_not_press_them_again(reviewer: Any, review: Review, name: str) -> None:
    before = read_pair(reviewer)
    reviewer.get_by_role("button", name=re.compile("^Different")).click()
    wait_for_another(reviewer, before)
    press_and_wait(reviewer, " ")
    assert [verdict for _, verdict in list_votes(review, name)] == ["different", "skip"]


def test_the_end_shows_agreement_and_brings_skipped_pairs_back(chromium: Any, server: Server, review: Review) -> None:
    for number in range(1, PAIRS + 1):
        same = review.pairs[number - 1].probability == 0.6
        review.vote("Lee", number, "same" if same else "different")
        review.vote("Kim", number, "skip" if number == 1 else "same" if same else "different")
    page = chromium.new_page()
    page.goto(server.address)
    page.evaluate("localStorage.setItem('resight.reviewer', 'Kim')")
    page.goto(f"{server.address}/#/review/leaks")
    page.get_by_role("heading", name=f"You have reviewed all {PAIRS} pairs").wait_for(timeout=WAIT)
    row = page.get_by_role("row", name="Kim and Lee")
    row.wait_for()
    assert row.inner_text().split("\t") == ["Kim and Lee", "35", "35", "1.00"]
    page.get_by_role("button", name="Review the 1 skipped pair again").click()
    page.locator("[data-pair]").wait_for()
    assert read_pair(page) == 1
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 1920])
def test_the_page_is_accessible_and_fits(chromium: Any, server: Server, review: Review, theme: str, width: int) -> None:
    reviewer, other = f"Ann {theme} {width}", f"Ben {theme} {width}"
    page = chromium.new_page(viewport={"width": width, "height": 800}, color_scheme=theme)
    page.goto(f"{server.address}/#/review")
    page.get_by_role("link", name=review.title).wait_for(timeout=WAIT)
    found = {"list": Axe().run(page)}
    page.goto(f"{server.address}/#/review/leaks")
    name = page.get_by_label("Your name or initials")
    name.wait_for()
    found["name"] = Axe().run(page)
    name.fill(reviewer)
    name.press("Enter")
    page.locator("[data-pair]").wait_for(timeout=WAIT)
    page.wait_for_function("() => document.querySelector('[data-pair]').dataset.evidence !== 'waiting'")
    found["pair"] = Axe().run(page)
    if folder := os.environ.get("REVIEW_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"review_{width}_{theme}.png")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for number in range(1, PAIRS + 1):
        review.vote(reviewer, number, "same")
        review.vote(other, number, "same" if number % 3 else "different")
    page.reload()
    page.get_by_role("row", name=f"{reviewer} and {other}").wait_for(timeout=WAIT)
    found["end"] = Axe().run(page)
    if folder:
        page.screenshot(path=Path(folder) / f"end_{width}_{theme}.png")
    assert {where: result.generate_report() for where, result in found.items() if result.violations_count} == {}
    page.close()
