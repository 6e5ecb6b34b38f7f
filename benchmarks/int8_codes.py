"""Centred against plain int8 codes of tokens: error, top 10, images that a proof scores again, and time.

    [RESIGHT_DATA=FOLDER] python benchmarks/int8_codes.py [--images 1500] [--queries 100] [--cache FOLDER] [--json FILE]

Codes: centred (d + 8 bytes per token, sums in 16 bits: the default), plain (d + 4 bytes, one step per token, sums in 32
bits: CraterBench-R), and each with the sums of the other, which separates the effect of the mean from that of the sums.
Tokens: 32 random unit vectors of 384 dimensions per image, whose queries are noisy copies of images; and, with
RESIGHT_DATA, 32 aggregated tokens per photo and map crop of real data (speed_parts/real_tokens.py).

Error: |score by codes - score in fp32|, over all pairs of query and image, mean and largest. Top 10: share of queries
whose first ten images by codes alone are those of fp32, in the same order. Bound: the mean proven error bound. Scored
again: mean share of images that the proof of the exact top 10 scores in fp32. Time: median per query, all cores.
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from speed_parts import real_tokens
from speed_parts.real_tokens import TokenSet
from speed_parts.synthetic_tokens import unit

from resight import kernels

CODES: dict[str, dict[str, Any]] = {
    "centred": {},
    "centred, 32-bit sums": {"accumulate": "int32"},
    "plain, 16-bit sums": {"plain": True, "accumulate": "int16"},
    "plain": {"plain": True},
}
TOP = 10


@dataclass(frozen=True)
class Measurement:
    tokens: str
    images: int
    queries: int
    code: str
    bytes_per_token: int
    mean_error: float
    largest_error: float
    same_top: float
    mean_bound: float
    scored_again: float
    milliseconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=int, default=1500)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--cache", type=Path, help="keep the real tokens in this folder")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sets = [make_random(options.images, options.queries), real_tokens.load(None, options.cache, options.images)]
    found = [
        measure(tokens, options.queries, code, settings)
        for tokens in sets
        if tokens is not None
        for code, settings in CODES.items()
    ]
    show(found)
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n", encoding="utf-8")


def make_random(images: int, queries: int, count: int = 32, d: int = 384) -> TokenSet:
    random = np.random.default_rng(0)
    tokens = unit(random.standard_normal((images, count, d), dtype=np.float32))
    noise = 0.1 * random.standard_normal((queries, count, d), dtype=np.float32)
    return TokenSet("random", tokens, unit(tokens[random.integers(0, images, queries)] + noise))


def measure(tokens: TokenSet, queries: int, code: str, settings: dict[str, Any]) -> Measurement:
    images, count, d = tokens.database.shape
    rows, offsets = tokens.database.reshape(-1, d), np.arange(images + 1) * count
    packed = kernels.pack(rows, offsets, kind="int8", **settings)
    own = sum(packed.codes.arrays()[name].nbytes for name in ("values", "steps", "shifts") if has(packed, name))
    errors, bounds, same, again, seconds = [], [], [], [], []
    asked = tokens.queries[:queries]
    for query in asked:
        start = time.perf_counter()
        scores = packed.scores(query)
        seconds.append(time.perf_counter() - start)
        errors.append(np.abs(scores - packed.exact_scores(query)))
        bounds.append(packed.errors(query).mean())
        first, _, certificate = packed.top(query, TOP)
        assert certificate is not None
        same.append(np.array_equal(packed.top(query, TOP, exact=False)[0], first))
        again.append(certificate.rescored / images)
    return Measurement(
        tokens.name,
        images,
        len(asked),
        code,
        own // len(rows),
        float(np.mean(errors)),
        float(np.max(errors)),
        float(np.mean(same)),
        float(np.mean(bounds)),
        float(np.mean(again)),
        1000 * float(np.median(seconds)),
    )


def has(packed: kernels.Packed, name: str) -> bool:
    return name in packed.codes.arrays()


def show(found: list[Measurement]) -> None:
    print("tokens   code                   B/token  mean error  largest  same top 10  mean bound  scored again  ms")
    for each in found:
        cells = (
            f"{each.tokens:8} {each.code:22} {each.bytes_per_token:7}",
            f"{each.mean_error:11.2e} {each.largest_error:8.1e} {each.same_top:12.2f}",
            f"{each.mean_bound:11.2e} {each.scored_again:13.3f} {each.milliseconds:5.1f}",
        )
        print(" ".join(cells))


if __name__ == "__main__":
    main()
