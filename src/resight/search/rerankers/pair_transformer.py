"""A learned comparison of the best candidates: tokens of query and candidate in, a score out.

In: a shortlist, and a branch with tokens. The scorer (a plug-in of `search/scorers`) compares every pair. Adds the
signal `pair_transformer`, its score, which `balance` and `temperature` may blend with the previous score (`rescore`):
the scorer gives a logit, so that temperature = 1 turns it into a probability. AMES as published blends with `balance`
(its λ) and `gamma` (its γ): λ · global + (1 − λ) · σ(γ · logit).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from resight.plugins import check_range
from resight.search import scorers
from resight.search.gallery import Gallery
from resight.search.locate_boxes import require_token_branch, split
from resight.search.rescoring import check_blend, choose_temperature, find_scores, rescore
from resight.search.scorers import Scorer
from resight.types import Choice, Query, Ranking

DEFAULT = Choice("transformer")


@dataclass(frozen=True)
class Config:
    candidates: int = 100  # first images of the ranking to score again
    scorer: Choice = DEFAULT  # plug-in that scores a pair of images, alone or with settings
    balance: float = 0.0  # weight of the previous score in the blend, 0 to 1; 0: the new score alone
    temperature: float = 0.0  # turn the new score into 1 / (1 + exp(-score / temperature)) first; 0: leave it as it is
    gamma: float | None = None  # instead of temperature: 1 / (1 + exp(-gamma · score)), as AMES has it

    def __post_init__(self) -> None:
        check_range("candidates", self.candidates, 0, 1_000_000)
        check_blend(self.balance, self.temperature, self.gamma)


def build(config: Config) -> "PairTransformer":
    return PairTransformer(config, scorers.build(config.scorer.name, **config.scorer.settings))


class PairTransformer:
    def __init__(self, config: Config, scorer: Scorer) -> None:
        self.candidates = config.candidates
        self.signals: tuple[str, ...] = ("pair_transformer",)
        self._config = config
        self._scorer = scorer

    def rerank(self, query: Query, ranking: Ranking, gallery: Gallery) -> Ranking:
        branch = require_token_branch(query)
        looked_at = ranking.ids[: self.candidates]
        if not looked_at:
            return ranking
        rows = query.descriptors[branch]

        def compare(names: Sequence[str]) -> dict[str, float]:
            images = split(gallery.descriptors(branch, names))
            return {image.ids[0]: self._scorer.score(rows, image) for image in images}

        found = find_scores(f"{self._scorer.fingerprint} branch {branch}", rows, looked_at, compare)
        temperature = choose_temperature(self._config.temperature, self._config.gamma)
        return rescore(ranking, found, "pair_transformer", self._config.balance, temperature)
