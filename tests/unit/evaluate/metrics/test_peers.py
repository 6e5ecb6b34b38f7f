"""Every metric that ranx and ir_measures have too, on random rankings with ignored images taken out beforehand."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from resight.evaluate import judge
from resight.types import Judgement

QUERIES = 40
K = (1, 3, 10)
# Run apart: ranx is compiled by numba, which takes a minute, unless it is told not to before it is imported.
ASK_RANX = """
import json, sys, warnings
warnings.simplefilter("ignore")
import resight
from ranx import Qrels, Run, evaluate
qrels, run, metrics = json.load(sys.stdin)
run, qrels = Run(run), Qrels(qrels)
evaluate(qrels, run, metrics)
ours = resight.judge(run, qrels, ["ap"]).figures["ap"].value  # takes their objects as they are
assert abs(ours - run.mean_scores["map"]) < 1e-9, (ours, run.mean_scores["map"])
print(json.dumps({name: {query: float(value) for query, value in run.scores[name].items()} for name in metrics}))
"""


def draw_queries() -> dict[str, tuple[list[str], Judgement]]:
    """Rankings cut at 25 of 30 images, so that some positives are not found."""
    random = np.random.default_rng(0)
    queries = {}
    for number in range(QUERIES):
        order = [f"i{row}" for row in random.permutation(30)]
        positives = random.choice(30, size=random.integers(1, 12), replace=False)
        queries[f"q{number}"] = order[:25], Judgement({f"i{row}": 1 for row in positives})
    return queries


def judge_queries() -> dict[str, dict[str, float]]:
    kinds = ("ap", "precision", "recall", "recall_fraction")
    names = ["ap", *(f"{kind}@{k}" for kind in kinds for k in K)]
    return {query: judge(ids, truth, names) for query, (ids, truth) in draw_queries().items()}


def check(theirs: dict[str, dict[str, float]], names: dict[str, str]) -> None:
    """Query by query. Their AP@k is divided by all positives; ours by as many as k ranks can hold."""
    truths = {query: len(truth.grades) for query, (_, truth) in draw_queries().items()}
    for query, values in judge_queries().items():
        for ours, name in names.items():
            k = int(ours.partition("@")[2] or 10**6)
            scale = truths[query] / min(k, truths[query]) if ours.startswith("ap@") else 1.0
            assert values[ours] == pytest.approx(theirs[name][query] * scale, abs=1e-12), (query, ours)


def test_figures_agree_with_ir_measures() -> None:
    ir_measures = pytest.importorskip("ir_measures")
    qrels = [ir_measures.Qrel(q, id, 1) for q, (_, truth) in draw_queries().items() for id in truth.grades]
    run = [
        ir_measures.ScoredDoc(q, id, float(-place))
        for q, (ids, _) in draw_queries().items()
        for place, id in enumerate(ids)
    ]
    names = {"ap": "AP"}
    for k in K:
        names |= {f"ap@{k}": f"AP@{k}", f"precision@{k}": f"P@{k}", f"recall@{k}": f"Success@{k}"}
        names |= {f"recall_fraction@{k}": f"R@{k}"}
    theirs: dict[str, dict[str, float]] = {}
    for found in ir_measures.iter_calc([ir_measures.parse_measure(name) for name in names.values()], qrels, run):
        theirs.setdefault(str(found.measure), {})[found.query_id] = found.value
    check(theirs, names)


def test_figures_agree_with_ranx() -> None:
    names = {"ap": "map"}
    for k in K:
        names |= {f"ap@{k}": f"map@{k}", f"precision@{k}": f"precision@{k}", f"recall@{k}": f"hit_rate@{k}"}
        names |= {f"recall_fraction@{k}": f"recall@{k}"}
    qrels = {query: dict(truth.grades) for query, (_, truth) in draw_queries().items()}
    run = {query: {id: 100.0 - place for place, id in enumerate(ids)} for query, (ids, _) in draw_queries().items()}
    asked = subprocess.run(
        [sys.executable, "-c", ASK_RANX],
        input=json.dumps([qrels, run, list(names.values())]),
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if "No module named" in asked.stderr:
        pytest.skip("ranx is not installed")
    assert asked.returncode == 0, asked.stderr
    check(json.loads(asked.stdout), names)
