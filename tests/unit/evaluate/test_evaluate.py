"""`resight.evaluate` is a function and a package, whatever is imported first; options that exclude each other."""

import subprocess
import sys
from pathlib import Path

import pytest

import resight
from resight.errors import InputError
from resight.evaluate.evaluate import _make_name
from resight.types import Branch, Choice, Recipe

CALLED = "assert callable(resight.evaluate) and resight.evaluate.judge is judge"
RECIPE = Recipe("walls", (Branch(Choice("sift"), Choice("vlad")),), data=Choice("manifest"), metrics=("ap",))


@pytest.mark.parametrize(
    "program",
    [
        f"import resight; resight.evaluate; from resight.evaluate import judge; {CALLED}",
        f"from resight.evaluate import judge; import resight; {CALLED}",
        f"import resight.evaluate.evaluate; from resight.evaluate import judge; {CALLED}",
        f"from resight import evaluate; from resight.evaluate import judge; import resight; {CALLED}",
    ],
)
def test_the_package_can_be_called_whatever_is_imported_first(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True)


def test_calling_the_package_evaluates() -> None:
    with pytest.raises(InputError, match="belong to a curve"):
        resight.evaluate(RECIPE, Path(), loss=0.1)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"steps": ["5"]}, "belong to a curve"),
        ({"curve": "shortlist", "strata": ["size"]}, "a curve has no strata"),
        ({"brightness": [1.0], "curve": "shortlist"}, "changes the images"),
        ({"brightness": [1.0], "keep": Path("kept")}, "changes the images"),
        ({"brightness": []}, "no such brightness"),
        ({"encoders": ["sift"]}, "a Recipe cannot be combined"),
    ],
)
def test_options_that_exclude_each_other_are_refused(options: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        resight.evaluate(RECIPE, Path(), **options)  # type: ignore[arg-type]


def test_a_curve_has_one_recipe() -> None:
    with pytest.raises(InputError, match="a curve shows one recipe"):
        resight.evaluate([RECIPE, RECIPE], Path(), curve="shortlist")


def test_many_recipes_are_named_together() -> None:
    assert _make_name(["a"], []) == ""
    assert _make_name(["a"], ["b"]) == ""
    assert _make_name(["x/a.toml", "craterbench/cnn"], []) == "a, craterbench/cnn"
    assert _make_name(["a"], ["b", "c", "d", "e", "f"]) == "a with b, c, d, 2 more"
