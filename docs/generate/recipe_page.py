"""The page of recipes: every recipe that comes with the package, what it is for, and its text."""

from collections.abc import Iterator
from pathlib import Path

import resight

FOLDER = Path(resight.__file__).parent / "recipes"
SECTIONS = {
    "": "Presets and data sets of this project",
    "places": "Places",
    "regions": "Regions",
    "craterbench": "CraterBench-R",
    "patchify": "Patchify",
    "msls_london": "MSLS London",
    "cider": "CiDeR",
}


def write_page() -> str:
    parts = [
        "# Recipes\n",
        "Every recipe that comes with resight. `--preset NAME` and `--recipe FILE` choose one when you index, "
        "`resight eval NAME` measures one; [Recipes](../guides/recipes.md) explains the keys, "
        "[Plug-ins](plugins.md) every setting.\n",
    ]
    found = {folder: sorted((FOLDER / folder).glob("*.toml")) for folder in _list_folders()}
    for folder, title in SECTIONS.items():
        parts.append(f"## {title}\n")
        parts += [_describe(path) for path in found.pop(folder)]
    if found:
        raise LookupError(f"no title for the recipes in {', '.join(found)}: add it to SECTIONS in {__file__}")
    return "\n".join(parts)


def _list_folders() -> Iterator[str]:
    yield ""
    yield from sorted(path.name for path in FOLDER.iterdir() if path.is_dir() and any(path.glob("*.toml")))


def _describe(path: Path) -> str:
    name = path.relative_to(FOLDER).with_suffix("").as_posix()
    text = path.read_text()
    lines = text.splitlines()
    comment = [line.lstrip("# ") for line in lines[: _count_comments(lines)]]
    body = "\n".join(lines[len(comment) :]).strip()
    # Indented, so that the block lies inside the folded part.
    block = "\n".join(f"    {line}".rstrip() for line in ("```toml", *body.splitlines(), "```"))
    anchor = name.replace("/", "-")
    return f'### `{name}` {{ #{anchor} }}\n\n{" ".join(comment)}\n\n??? note "Recipe"\n\n{block}\n'


def _count_comments(lines: list[str]) -> int:
    return next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
