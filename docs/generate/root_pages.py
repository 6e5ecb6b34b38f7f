"""Pages for files that lie at the root of the repository: their links are turned to where the site has the target."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = {
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
    "code-of-conduct.md": "CODE_OF_CONDUCT.md",
    "examples.md": "examples/README.md",
}
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)#\s]*)(#[^)\s]*)?\)")


def write_page(page: str) -> str:
    """The text of a root file with links that hold inside the site; those to other files become plain text."""
    source = ROOT / PAGES[page]
    places = {(ROOT / name).resolve(): target for target, name in PAGES.items()}

    def turn(match: re.Match[str]) -> str:
        label, target, fragment = match.group(1), match.group(2), match.group(3) or ""
        if not target or re.match(r"[a-z]+:", target):
            return match.group(0)
        path = (source.parent / target).resolve()
        if path in places:
            return f"{label}{places[path]}{fragment})"
        if path.is_relative_to(ROOT / "docs"):
            return f"{label}{path.relative_to(ROOT / 'docs').as_posix()}{fragment})"
        if not path.exists():
            raise FileNotFoundError(f"{source.name} links to {target}, which does not exist")
        return "`" + path.relative_to(ROOT).as_posix() + "`"

    return LINK.sub(turn, source.read_text())
