"""Evaluation: rankings and ground truth in, figures with their stated conventions out.

The package is also the function `resight.evaluate(recipes, data, ...)`: calling the module calls
`resight.evaluate.evaluate.evaluate`. So both work, in any order of imports:

    import resight
    evaluation = resight.evaluate("gardens_point", "data/gardenspoint")

    from resight.evaluate import judge
    judge(ranked_ids, judgement, ["ap", "recall@1"])
"""

from resight.callable_package import make_callable
from resight.evaluate.judge_query import judge, judge_all

__all__ = ["judge", "judge_all"]

make_callable(__name__, "resight.evaluate.evaluate")
