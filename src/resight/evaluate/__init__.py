"""Evaluation: rankings and ground truth in, figures with their stated conventions out.

The package is also the function `resight.evaluate(recipes, data, ...)`: calling the module calls
`resight.evaluate.evaluate.evaluate`. So both work, in any order of imports:

    import resight
    evaluation = resight.evaluate("gardens_point", "data/gardenspoint")

    from resight.evaluate import judge
    judge(ranked_ids, judgement, ["ap", "recall@1"])
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from resight.evaluate.judge_query import judge, judge_all

if TYPE_CHECKING:
    from resight.evaluate.evaluation import Evaluation

__all__ = ["judge", "judge_all"]


class _CallableModule(ModuleType):
    def __call__(self, *args: Any, **options: Any) -> "Evaluation":
        """See resight.evaluate.evaluate.evaluate."""
        from resight.evaluate.evaluate import evaluate

        return evaluate(*args, **options)


sys.modules[__name__].__class__ = _CallableModule
