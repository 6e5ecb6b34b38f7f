"""The documentation: it builds strictly, needs no other server, and documents every public name and setting."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import resight
from resight.apps.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
# What a browser would load: scripts, styles, pictures, fonts. Links that a reader may follow are fine.
LOADED = re.compile(r"""<(?:script|img|iframe|source)[^>]*\ssrc="?(?:https?:)?//|<link[^>]*\shref="?(?:https?:)?//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return folder


def test_the_site_builds_strictly_with_all_its_sections(site: Path) -> None:
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert {"index.html", "get-started/quickstart.html", "guides/craters.html", "papers/cider.html"} <= pages
    assert {f"reference/{name}.html" for name in ("cli", "python", "http", "recipes", "plugins")} <= pages


def test_pages_load_nothing_from_another_server(site: Path) -> None:
    loaded = {
        path.name: found[0] for path in site.rglob("*.html") if (found := LOADED.findall(path.read_text("utf-8")))
    }
    assert not loaded


def test_search_works_from_a_disk(site: Path) -> None:
    assert "var __index" in (site / "search" / "search_index.js").read_text(encoding="utf-8")


def test_the_reference_holds_every_command_and_public_name(site: Path) -> None:
    commands = (site / "reference" / "cli.html").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f'id="{name}' not in commands] == []
    python = (site / "reference" / "python.html").read_text(encoding="utf-8")
    anchors = set(re.findall(r'id="([^"]+)"', python))
    homes = {  # their packages have the same names
        "evaluate": "resight.evaluate.evaluate.evaluate",
        "audit": "resight.tasks.audit.audit",
        "train": "resight.tasks.train.train",
    }
    public = [name for name in resight.__all__ if not name.startswith("_")]
    missing = [name for name in public if homes.get(name, f"resight.{name}") not in anchors]
    assert missing == []


def test_the_reference_shows_a_setting_with_its_default_and_meaning(site: Path) -> None:
    page = (site / "reference" / "plugins.html").read_text(encoding="utf-8")
    row = page[page.index('id="index-hnsw"') :]
    assert "links" in row[:3000]
    assert "32" in row[:3000]


def test_a_page_of_the_root_links_to_pages_of_the_site(site: Path) -> None:
    page = (site / "contributing.html").read_text(encoding="utf-8")
    assert 'href="architecture.html"' in page


def test_the_readme_fits_a_screen() -> None:
    words = (ROOT / "README.md").read_text(encoding="utf-8").split()
    assert len(words) <= 700
