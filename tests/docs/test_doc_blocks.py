"""README and Get started work as written: every console and Python block runs, in order, on photographs of the demo.

A block that cannot run here is excused by a comment on the line before it, with the kind of obstacle in its reason:

    <!-- not run: data, network or set-up, and what exactly -->

All pages share one folder, so a command that several of them show runs once. `resight serve` runs until it answers, on
a free port, and is then stopped.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs" / "get-started").glob("*.md")))
KINDS = ("data", "network", "set-up")
ALIASES = ("bash", "sh", "shell", "shell-session", "py", "python3", "pycon")  # blocks that the extractor would miss
BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>[\w-]+)[^\n]*\n(?P<text>.*?)^(?P=indent)```[ ]*$", re.M | re.S)
EXCUSE = re.compile(r"<!-- *not run:(?P<reason>.*?)-->\s*\Z", re.S)
SERVING = re.compile(r"http://\S+?/")
SECONDS = 120  # for one command


@dataclass(frozen=True)
class Block:
    where: str  # README.md:17
    language: str
    text: str
    excuse: str | None = None


@pytest.fixture(scope="module")
def folder(photo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(photo_folder, tmp_path_factory.mktemp("blocks") / "folder"))


@pytest.fixture(scope="module")
def done() -> set[str]:
    """Commands that have succeeded in the folder."""
    return set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_a_page_runs_on_photographs_of_the_demo(
    page: Path, folder: Path, done: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    run_page(page, done)


def test_the_pages_have_blocks_that_run() -> None:
    for page in PAGES[0], ROOT / "docs" / "get-started" / "quickstart.md":
        running = {block.language for block in read_blocks(page) if block.excuse is None}
        assert running == {"console", "python"}, page.name


def test_every_excuse_names_an_obstacle() -> None:
    for page in PAGES:
        for block in read_blocks(page):
            assert block.excuse is None or any(kind in block.excuse for kind in KINDS), (
                f"{block.where}: the reason {block.excuse!r} names none of {', '.join(KINDS)}"
            )


def test_no_block_has_a_language_that_is_passed_over() -> None:
    for page in PAGES:
        languages = {found["language"] for found in BLOCK.finditer(page.read_text(encoding="utf-8"))}
        assert not languages & set(ALIASES), f"{page.name}: write console or python"


def test_blocks_are_found_with_their_line_indent_and_excuse(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        '# Title\n\n```console\nls\n```\n\n1. First:\n\n    ```python title="a"\n    if x:\n        y\n    ```\n\n'
        "<!-- not run: network -->\n```console\npip install x\n```\n\n```text\noutput\n```\n"
    )
    assert read_blocks(page) == [
        Block("page.md:3", "console", "ls\n"),
        Block("page.md:9", "python", "if x:\n    y\n"),
        Block("page.md:15", "console", "pip install x\n", "network"),
    ]


@pytest.mark.parametrize(
    ("language", "text", "complaint"),
    [
        ("console", "true\nls missing-file\ntrue", "ls missing-file"),
        ("console", "resight search missing.resight query.jpg", "there is no collection at missing.resight"),
        ("console", "resight serve missing.resight --open", "there is no collection at missing.resight"),
        ("python", "x = 1\nx / 0", "division by zero"),
        ("python", "import warnings\nwarnings.warn('old', stacklevel=1)", "old"),
    ],
)
def test_a_block_that_fails_fails_its_page(
    language: str, text: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(f"```{language}\n{text}\n```\n")
    with pytest.raises(AssertionError, match=re.escape(complaint)) as caught:
        run_page(page, set())
    assert str(caught.value).startswith("page.md:1")


def test_an_excused_block_does_not_run(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- not run: network: it downloads -->\n```console\nfalse\n```\n")
    run_page(page, set())


def test_an_excuse_without_a_reason_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- not run: -->\n```console\ntrue\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md:2: give the reason"):
        run_page(page, set())


def test_lines_that_end_in_a_backslash_are_one_command() -> None:
    assert split_commands("a \\\n  b\n\n# a remark\nc  # another\n") == ["a \\\n  b", "c"]


def run_page(page: Path, done: set[str]) -> None:
    """Run all blocks of a page in the current folder, except commands that are `done`, and add to these.

    The Python blocks of a page share one namespace.
    """
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in read_blocks(page):
        assert block.excuse != "", f"{block.where}: give the reason: <!-- not run: REASON -->"
        if block.excuse is not None:
            continue
        if block.language == "python":
            run_python(block, namespace)
            continue
        for command in split_commands(block.text):
            if command not in done:
                run_command(command, block.where)
                done.add(command)


def read_blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    blocks = []
    for found in BLOCK.finditer(text):
        if found["language"] in ("console", "python"):
            before = text[: found.start()]
            excuse = EXCUSE.search(before)
            where = f"{page.name}:{before.count(chr(10)) + 1}"
            code = textwrap.dedent(found["text"])
            blocks.append(Block(where, found["language"], code, excuse and excuse["reason"].strip()))
    return blocks


def run_python(block: Block, namespace: dict[str, object]) -> None:
    try:
        exec(compile(block.text, block.where, "exec"), namespace)
    except Exception as error:
        raise AssertionError(f"{block.where}: {type(error).__name__}: {error}") from error


def split_commands(text: str) -> list[str]:
    """The commands of a block without remarks, the same whether or not a remark follows."""
    commands = [re.sub(r"\s+#.*", "", command) for command in re.split(r"(?<!\\)\n", text)]
    return [command for command in commands if command.strip() and not command.startswith("#")]


def run_command(command: str, where: str) -> None:
    if command.startswith("resight serve"):
        serve_and_stop(command, where)
        return
    done = subprocess.run(
        ["bash", "-c", command], env=make_environment(), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, f"{where}: {command}\nexit code {done.returncode}\n{done.stdout}{done.stderr}"


def serve_and_stop(command: str, where: str) -> None:
    """Start the server on a free port, ask whether it is well, stop it as Ctrl-C does."""
    words = command + ("" if "--port" in command else " --port 0")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(["bash", "-c", f"exec {words}"], env=make_environment(), **pipes) as server:
        limit = threading.Timer(SECONDS, server.kill)
        limit.start()
        try:
            first = server.stdout.readline()
            address = SERVING.search(first)
            if address:
                with urllib.request.urlopen(f"{address[0]}api/health", timeout=SECONDS) as answer:
                    assert answer.status == 200, f"{where}: {command}: {answer.status}"
                server.send_signal(signal.SIGINT)
            rest = server.stdout.read()
            server.wait(SECONDS)
        finally:
            limit.cancel()
            server.kill()
    assert address and server.returncode == 0, f"{where}: {command}\nexit code {server.returncode}\n{first}{rest}"


def make_environment() -> dict[str, str]:
    programs = Path(sys.executable).parent
    assert shutil.which("resight", path=str(programs)), f"{programs} has no resight"
    return {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "BROWSER": "true",  # --open succeeds, and opens nothing
        "ORT_DISABLE_TELEMETRY": "1",
    }
