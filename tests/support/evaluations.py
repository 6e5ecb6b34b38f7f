"""RunResults and Summaries from values written down by hand."""

from collections.abc import Mapping, Sequence

from resight.evaluate.results import JudgedQuery, RunResult
from resight.evaluate.summary import Summary, summarise
from resight.types import Branch, Choice, Recipe

RECIPE = Recipe("tried", (Branch(Choice("sift"), Choice("vlad")),), metrics=("recall@1", "ap"))


def make_result(
    values: Mapping[str, Sequence[float]], seconds: Sequence[float] | None = None, recipe: Recipe = RECIPE
) -> RunResult:
    """One query per column of `values`; `seconds` are those until the images are in order; boxes take 0.2 more."""
    count = len(next(iter(values.values())))
    queries = [
        JudgedQuery(
            f"q{number}",
            "",
            {name: column[number] for name, column in values.items()},
            "a",
            None,
            second + 0.2,
            0.5,
            {"shortlist": second, "locate": 0.2},
        )
        for number, second in zip(range(count), seconds or [0.01] * count, strict=True)
    ]
    conventions = {name: f"what {name} means" for name in values}
    return RunResult(recipe, "walls", 40, tuple(values), conventions, tuple(queries), (), 2.0)


def make_summary(
    values: Mapping[str, Sequence[float]], seconds: Sequence[float] | None = None, recipe: Recipe = RECIPE
) -> Summary:
    return summarise(make_result(values, seconds, recipe))
