"""How good the answers are: rankings and truth in, figures with their stated conventions out."""

from resight.evaluate.judging import judge, judge_all

__all__ = ["judge", "judge_all"]
