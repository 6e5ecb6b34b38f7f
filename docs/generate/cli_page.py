"""The page of commands: every command and option of `resight`, read from the command itself."""

from collections.abc import Iterator
from typing import Any

import click
import typer

from resight.apps.cli import app

HIDDEN = {"help", "install_completion", "show_completion"}


def write_page() -> str:
    group = typer.main.get_command(app)
    context = click.Context(group, info_name="resight")
    parts = [
        "# Command line\n",
        "Every command and option, generated from the command itself. `resight COMMAND --help` prints the same. "
        "[Install](../get-started/install.md#exit-codes) lists the exit codes.\n",
        "| Command | Job |",
        "|---|---|",
    ]
    commands = list(_walk(group, context, ""))
    for name, command in commands:
        parts.append(f"| [`resight {name}`](#{_anchor(name)}) | {_summary(command)} |")
    parts.append("")
    for name, command in commands:
        parts.append(_describe(name, command))
    return "\n".join(parts)


def _walk(group: Any, context: click.Context, prefix: str) -> Iterator[tuple[str, Any]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "list_commands"):
            yield from _walk(command, click.Context(command, info_name=name, parent=context), f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def _describe(name: str, command: Any) -> str:
    context = click.Context(command, info_name=f"resight {name}")
    parts = [f"## {name} {{ #{_anchor(name)} }}\n"]
    parts += [_paragraphs(command.help or ""), f"\n```text\n{' '.join(command.get_usage(context).split())}\n```\n"]
    rows = [row for parameter in command.params if parameter.name not in HIDDEN for row in _rows(parameter, context)]
    if rows:
        parts += ["| Argument or option | Meaning | Default |", "|---|---|---|", *rows, ""]
    return "\n".join(parts)


def _rows(parameter: Any, context: click.Context) -> Iterator[str]:
    record = parameter.get_help_record(context)
    if record is None:
        return
    names, text = record
    default = parameter.get_default(context)
    shown = "required" if parameter.required else ""
    if not parameter.required and default not in (None, False, (), [], ""):
        shown = f"`{default}`"
    text = text.split("  [")[0].removesuffix("[required]").strip()
    yield f"| `{_cell(names)}` | {_cell(text)} | {_cell(shown)} |"


def _summary(command: Any) -> str:
    return _paragraphs(command.help or "").split("\n\n")[0]


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.replace("\b", "").split("\n\n"))


def _anchor(name: str) -> str:
    return name.replace(" ", "-")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
