"""How good the answers are: rankings and truth in, figures with their stated conventions out."""

from resight.evaluate.judge_query import judge, judge_all

__all__ = ["judge", "judge_all"]
