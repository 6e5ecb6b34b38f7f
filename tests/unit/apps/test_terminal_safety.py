"""Text from files never steers the terminal."""

import ast
import json
from pathlib import Path

import pytest

import resight.apps.cli
from resight.apps import terminal

HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202egpj.exe\x9b31m\r\b\x7f"
COMMANDS = sorted(Path(resight.apps.cli.__file__).parent.glob("*.py"))


def assert_plain(text: str) -> None:
    assert all(letter.isprintable() or letter == "\n" for letter in text)


def test_titles_and_cells_of_tables_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_table(f"title {HOSTILE}", ("a",), [[HOSTILE]])
    assert_plain(capsys.readouterr().out)


def test_lines_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.echo(f"wrote {HOSTILE}\nsecond line", Path("a\x1bb"), 3)
    found = capsys.readouterr().out
    assert_plain(found)
    assert found.endswith("\nsecond line a\N{REPLACEMENT CHARACTER}b 3\n")


def test_json_is_escaped_and_stays_json(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_json({"id": HOSTILE, "title": "ü 图"})
    found = capsys.readouterr().out
    assert_plain(found)
    assert "ü 图" in found
    assert json.loads(found) == {"id": HOSTILE, "title": "ü 图"}


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_no_command_prints_past_the_escaping(path: Path) -> None:
    if path.stem in ("serve", "__init__"):
        pytest.skip("prints its own words, and the addresses and paths that its options name")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"line {node.lineno}: terminal.echo"
