"""Binarised ASMK: one row for each visual word that an image has.

Residuals of the features of a word are summed and binarised: bit j is 1 where Σ (x - c_w)_j > 0. Out: vectors
[n, D/8] uint8 (packed bits, most significant first) and words [n]. A query assigns each feature to its `query_words`
nearest words, a database image to one. The match kernel and the inverted file are in `resight/index/asmk_inverted.py`.
Tolias, Avrithis and Jégou, ICCV 2013 (ASMK*).
"""

from dataclasses import dataclass

import numpy as np

from resight.encode import codebook as codebooks
from resight.encode.descriptors._vocabulary import VocabularySettings, open_codebook, read_rows, sum_residuals
from resight.plugins import check_range
from resight.types import Descriptors, Features, Role


@dataclass(frozen=True)
class Config(VocabularySettings):
    query_words: int = 5  # nearest words that each query feature is assigned to; database features get one

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("query_words", self.query_words, 1, 1000)


def build(config: Config) -> "Asmk":
    return Asmk(open_codebook(config, "asmk_4096"), config.query_words, config.normalise)


class Asmk:
    def __init__(self, codebook: codebooks.Codebook, query_words: int, normalise: bool = False) -> None:
        self.fingerprint = f"asmk({codebook.fingerprint}{', unit length' if normalise else ''})"
        self._codebook = codebook
        self._normalise = normalise
        self._count = {"database": 1, "query": query_words}

    def describe(self, features: Features, role: Role) -> Descriptors:
        images = [read_rows(features, image, self._normalise) for image in range(len(features.ids))]
        parts = [sum_residuals(rows, self._codebook, self._count[role]) for rows in images]
        lengths = [len(words) for words, _ in parts]
        return Descriptors(
            ids=features.ids,
            vectors=np.concatenate([np.packbits(residuals > 0, axis=1) for _, residuals in parts]),
            owners=np.repeat(np.arange(len(parts), dtype=np.int32), lengths),
            words=np.concatenate([words for words, _ in parts]).astype(np.int32),
        )
