"""What has to be true of the repository as a whole: its tree, its paperwork, its recipes and its scripts."""

import ast
import contextlib
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from resight import plugins, recipe
from resight.encode import named_networks
from resight.errors import MissingWeights
from resight.evaluate import metrics

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = re.compile(r"(^|/)(\.git|\.venv|build|dist|__pycache__|\.[a-z_]+_cache|\.hypothesis|[^/]+\.egg-info)(/|$)")
# Folders that only one machine has. A path that starts in the middle of a longer one is relative, and fine.
MACHINE = re.compile(r"(?<![\w.~)}>*-])/(?:work|root|home|Users|tmp|opt|mnt|private)/|\b[A-Z]:\\Users\\")
# The same plug-in, command or term seen from parallel folders; `shortlist` is also the name of a curve that users type,
# and the modules of reproduce/kinds are the kinds that tables name. A worker is a process that works for another.
PARALLEL = {
    "audit.py": ["apps/cli", "reproduce/kinds", "tasks"],
    "cider.py": ["encode/backbones", "encode/descriptors/regions"],
    **{f"{task}.py": ["apps/cli", "tasks"] for task in ("dedup", "locate", "lookalikes", "match", "plan", "train")},
    "distances.py": ["evaluate", "reproduce/kinds"],
    "search.py": ["apps/cli", "apps/service/routes", "apps/service"],
    "shortlist.py": ["evaluate/curves", "search"],
    "strata.py": ["evaluate", "reproduce/kinds"],
    "suggest.py": ["apps/cli", "evaluate"],
    "worker.py": ["apps/service/jobs", "reproduce"],
}
BASH_SCRIPTS = [f"scripts/{name}" for name in ("setup", "demo", "check", "test", "docs", "coverage")]
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def list_files() -> list[Path]:
    """What belongs to the repository: tracked by git, or new and not ignored. Without git, all but what tools leave."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        found = subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\0")
        paths = [ROOT / name for name in found if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [path for path in ROOT.rglob("*") if not LEFT_OUT.search(path.relative_to(ROOT).as_posix())]
    return [path for path in paths if path.is_file()]


def list_texts() -> list[tuple[str, str]]:
    texts: list[tuple[str, str]] = []
    for path in list_files():
        data = path.read_bytes()
        if b"\0" not in data:
            texts.append((path.relative_to(ROOT).as_posix(), data.decode("utf-8", "replace")))
    return texts


def version() -> str:
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def test_the_tree_in_the_docs_names_every_folder_of_source_and_tests() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```.*?^```", text, re.DOTALL | re.MULTILINE)
    named = set(re.findall(r"([\w.-]+)/", "\n".join(blocks)))
    folders = {
        folder.name
        for path in list_files()
        for top in (ROOT / "src" / "resight", ROOT / "tests")
        if path.is_relative_to(top)
        for folder in (path.parent, *path.parent.parents)
        if folder.is_relative_to(top)
    }
    assert {"resight", "tests", "unit"} <= folders
    assert folders <= named, f"not in the tree of docs/architecture.md: {', '.join(sorted(folders - named))}"


def list_modules() -> list[Path]:
    return sorted((ROOT / "src" / "resight").rglob("*.py"))


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    long = {path.name: count for path in list_modules() if (count := len(path.read_text("utf-8").splitlines())) > 400}
    assert not long


def test_a_file_name_occurs_once_or_in_parallel_folders() -> None:
    where: dict[str, list[str]] = {}
    for path in list_modules():
        if path.name != "__init__.py":
            where.setdefault(path.name, []).append(path.parent.relative_to(ROOT / "src" / "resight").as_posix())
    twice = {name: folders for name, folders in where.items() if len(folders) > 1}
    assert twice == PARALLEL


def test_no_module_only_forwards_names() -> None:
    forwarding = [
        path.name
        for path in list_modules()
        if path.name not in ("__init__.py", "__main__.py")
        and all(
            (isinstance(node, (ast.Import, ast.ImportFrom, ast.Assign)) and "__all__" in ast.dump(node))
            or isinstance(node, (ast.Import, ast.ImportFrom))
            or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            for node in ast.parse(path.read_text("utf-8")).body
        )
    ]
    assert not forwarding


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        path.relative_to(ROOT).as_posix()
        for path in list_modules()
        if path.name != "__main__.py" and not ast.get_docstring(ast.parse(path.read_text("utf-8")))
    ]
    assert not silent


def test_no_file_holds_a_path_of_somebodys_machine() -> None:
    found = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in list_texts()
        if name != "LICENSE"
        for number, line in enumerate(text.splitlines(), start=1)
        if MACHINE.search(line)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("text", ["/" + "home/ana/a.jpg", "see /" + "tmp/x", "C:" + "\\Users\\ana", '"/' + 'root/x"'])
def test_a_path_of_a_machine_is_recognised(text: str) -> None:
    assert MACHINE.search(text)


@pytest.mark.parametrize("text", ["src/home/page.py", "https://example.org/home/", "~/tmp/x", "#!/usr/bin/env bash"])
def test_other_paths_are_not_taken_for_one(text: str) -> None:
    assert not MACHINE.search(text)


@pytest.mark.parametrize("name", recipe.shipped())
def test_a_shipped_recipe_names_plug_ins_and_settings_that_exist(name: str) -> None:
    for chosen in recipe.load_all(name):
        choices = [("resight.index", chosen.index)]
        choices += [("resight.data.sets", chosen.data)] if chosen.data else []
        choices += [("resight.search.rerankers", choice) for choice in chosen.rerankers]
        for branch in chosen.branches:
            choices += [("resight.encode.descriptors", branch.descriptor)]
            with contextlib.suppress(MissingWeights):  # of a network whose weights everybody has to bring along
                choices += [("resight.encode.backbones", named_networks.resolve_branch(branch).encoder)]
            choices += [("resight.encode.transforms", choice) for choice in branch.transforms]
            choices += [("resight.encode.photometric", branch.photometric)] if branch.photometric else []
        for package, choice in choices:
            plugins.configure(plugins.find(package, choice.name).Config, choice.settings, choice.name)
        for metric in chosen.metrics:
            metrics.build(metric)
        assert chosen.name.partition(recipe.LABEL_SEPARATOR)[0] == name
        assert chosen.store.name in plugins.names("resight.store")


def test_every_data_file_comes_with_the_wheel() -> None:
    package = ROOT / "src" / "resight"
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    included = {path for glob in tools["package-data"]["resight"] for path in package.glob(glob)}
    others = [path for path in list_files() if path.is_relative_to(package) and path.suffix not in (".py", ".c", ".h")]
    assert len(others) > 100
    assert not [path.relative_to(ROOT).as_posix() for path in others if path not in included]


def test_the_changelog_has_an_entry_for_this_version() -> None:
    assert re.search(
        rf"^## \[?{re.escape(version())}\b", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )


def test_the_citation_is_of_this_version() -> None:
    stated = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert stated is not None
    assert stated.group(1).strip("\"'") == version()


def test_every_link_between_pages_leads_to_a_file() -> None:
    broken = [
        f"{name}: {target}"
        for name, text in list_texts()
        if name.endswith(".md") and not name.startswith("docs/")  # the site's own links: tests/docs/test_site.py
        for target in LINK.findall(text)
        if "://" not in target and not (ROOT / name).parent.joinpath(target).exists()
    ]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("name", [*BASH_SCRIPTS, ".ci/run"])
def test_a_script_can_be_run_and_stops_at_the_first_error(name: str) -> None:
    path = ROOT / name
    assert os.access(path, os.X_OK)
    assert path.read_text(encoding="utf-8").startswith("#!/usr/bin/env bash\n")
    assert "\nset -euo pipefail\n" in path.read_text(encoding="utf-8")
