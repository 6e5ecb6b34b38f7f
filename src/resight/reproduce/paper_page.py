"""The files of measured tables: one page (HTML), one Markdown, one LaTeX and one JSON file per paper.

In: Reproductions. Out: FOLDER/<paper>.html, .md, .tex and .json for several tables of a paper, or
FOLDER/<paper>_<table>.… for one. The page stands alone: no script, and nothing is loaded from any server.
"""

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2

from resight.evaluate.summary import describe_machine, list_versions
from resight.evaluate.table import NOT_MEASURED, explain_absent, to_latex, to_markdown
from resight.files.atomic import write_atomic
from resight.reproduce.reproduction import VERDICT, Reproduction

SUFFIXES = ("html", "md", "tex", "json")
TONES = {  # verdict → class of its cell
    "inside the interval": "right",
    "confirmed": "right",
    "direction kept": "kept",
    "not reproduced": "wrong",
    "refuted": "wrong",
}


def write_files(found: Sequence[Reproduction], folder: Path) -> None:
    """The files of every paper that the tables belong to."""
    for paper, tables in _by_paper(found).items():
        wide = [each.tabulate(wide=True) for each in tables]
        markdown, latex = "\n".join(map(to_markdown, wide)), "\n".join(map(to_latex, wide))
        for suffix, text in zip(SUFFIXES, (render(tables, paper), markdown, latex, to_json(tables)), strict=True):
            path = folder / f"{_stem(paper, tables)}.{suffix}"
            with write_atomic(path, f"cannot write to {folder}", "choose another folder with --out") as new:
                new.write_text(text, encoding="utf-8")


def list_files(found: Sequence[Reproduction], folder: Path) -> list[Path]:
    """The files that `write_files` writes."""
    papers = _by_paper(found).items()
    return [folder / f"{_stem(paper, tables)}.{suffix}" for paper, tables in papers for suffix in SUFFIXES]


def _by_paper(found: Sequence[Reproduction]) -> dict[str, list[Reproduction]]:
    papers = dict.fromkeys(each.table.paper for each in found)
    return {paper: [each for each in found if each.table.paper == paper] for paper in papers}


def _stem(paper: str, tables: Sequence[Reproduction]) -> str:
    return paper if len(tables) > 1 else tables[0].table.name.replace("/", "_")


def render(tables: Sequence[Reproduction], paper: str) -> str:
    """The page of several tables of one paper."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string((resources.files(__package__) / "paper_page.html").read_text(encoding="utf-8"))
    parts = [(each, each.tabulate(wide=True)) for each in tables]
    return template.render(
        title=tables[0].table.name if len(tables) == 1 else paper,
        parts=parts,
        absent=[explain_absent(table) for _, table in parts],
        not_measured=NOT_MEASURED,
        tones=TONES,
        verdict=VERDICT,
        machine=_describe(),
    )


def to_json(tables: Sequence[Reproduction]) -> str:
    values = {"made_by": _describe(), "tables": [each.to_dict() for each in tables]}
    return json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _describe() -> dict[str, Any]:
    return {"versions": list_versions(), "machine": describe_machine()}
