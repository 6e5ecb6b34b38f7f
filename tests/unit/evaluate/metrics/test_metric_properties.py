"""Facts that hold for every ranking, and the trapezoidal AP against a second implementation."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resight.evaluate import judge
from resight.evaluate.trec import open_run
from resight.types import Box, Judgement

NAMES = ["ap", "ap_trapezoid", "ap@5", "recall@3", "recall_fraction@3", "precision@3", "precision_revisited@3"]
LOCALISING = ["locscore", "locscore@0.3", "locscore@0.4", "locscore@0.5", "mlocscore"]
GRADED = [f"{protocol}/{name}" for protocol in ("easy", "medium", "hard") for name in NAMES]
IDS = [f"image{number}" for number in range(12)]
Query = tuple[list[str], Judgement, dict[str, Box]]

examine = settings(deadline=None, max_examples=60)  # a busy machine must not fail a test


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    x, y = draw(st.integers(0, 20)), draw(st.integers(0, 20))
    return (x, y, x + draw(st.integers(1, 20)), y + draw(st.integers(1, 20)))


@st.composite
def queries(draw: st.DrawFn) -> Query:
    """A ranking that may be cut short, positives with true boxes, and a shown box for some images."""
    ranking = draw(st.permutations(IDS))[: draw(st.integers(0, len(IDS)))]
    positives = draw(st.sets(st.sampled_from(IDS), min_size=1))
    grades = {id: draw(st.integers(1, 2)) for id in sorted(positives)}
    truth = Judgement(grades, boxes={id: draw(boxes()) for id in sorted(positives)})
    shown = {id: draw(boxes()) for id in sorted(draw(st.sets(st.sampled_from(IDS))))}
    return ranking, truth, shown


@examine
@given(queries())
def test_every_value_is_between_0_and_1(query: Query) -> None:
    ranking, truth, shown = query
    assert all(0 <= value <= 1 for value in judge(ranking, truth, NAMES + LOCALISING, shown).values())
    assert all(0 <= value <= 1 or math.isnan(value) for value in judge(ranking, truth, GRADED).values())


@examine
@given(st.sets(st.sampled_from(IDS), min_size=1), st.randoms(use_true_random=False))
def test_perfect_ranking_gives_1(positives: set[str], random: object) -> None:
    ranking = sorted(positives)
    random.shuffle(ranking)  # type: ignore[attr-defined]
    ranking += [id for id in IDS if id not in positives]
    truth = Judgement(dict.fromkeys(positives, 1), boxes=dict.fromkeys(positives, (0, 0, 3, 3)))
    names = ["ap", "ap_trapezoid", "ap@5", "recall@3", "precision_revisited@3", f"recall_fraction@{len(positives)}"]
    names += [f"precision@{len(positives)}", *LOCALISING]
    values = judge(ranking, truth, names, dict.fromkeys(IDS, (0, 0, 3, 3)))
    assert values == pytest.approx(dict.fromkeys(names, 1.0), abs=1e-12)


@examine
@given(queries(), st.lists(st.integers(0, 12), max_size=6))
def test_ignored_ids_move_nothing_wherever_they_are(query: Query, places: list[int]) -> None:
    ranking, truth, shown = query
    junk = [f"junk{number}" for number in range(len(places))]
    longer = list(ranking)
    for id, place in zip(junk, places, strict=True):
        longer.insert(place, id)
    names = NAMES + LOCALISING + GRADED
    with_junk = judge(longer, replace(truth, ignored=frozenset(junk)), names, shown)
    assert with_junk == pytest.approx(judge(ranking, truth, names, shown), abs=0, nan_ok=True)


@examine
@given(queries(), st.integers(1, 5))
def test_irrelevant_images_at_the_end_move_nothing(query: Query, count: int) -> None:
    ranking, truth, shown = query
    longer = [*ranking, *(f"stranger{number}" for number in range(count))]
    names = NAMES + LOCALISING + GRADED
    assert judge(longer, truth, names, shown) == pytest.approx(judge(ranking, truth, names, shown), abs=0, nan_ok=True)


@examine
@given(queries(), st.integers(1, 11))
def test_positive_that_moves_up_past_a_miss_never_lowers_a_figure(query: Query, place: int) -> None:
    ranking, truth, shown = query
    better = list(ranking)
    if place < len(ranking) and ranking[place] in truth.grades and ranking[place - 1] not in truth.grades:
        better[place - 1], better[place] = ranking[place], ranking[place - 1]
    names = NAMES + LOCALISING + GRADED
    before, after = judge(ranking, truth, names, shown), judge(better, truth, names, shown)
    assert all(after[name] >= before[name] - 1e-12 for name in names if not math.isnan(before[name]))
    assert [math.isnan(value) for value in after.values()] == [math.isnan(value) for value in before.values()]


@examine
@given(queries())
def test_order_of_the_judgement_moves_nothing(query: Query) -> None:
    ranking, truth, shown = query
    turned = replace(truth, grades=dict(reversed(truth.grades.items())), boxes=dict(reversed(truth.boxes.items())))
    names = NAMES + LOCALISING + GRADED
    assert judge(ranking, turned, names, shown) == pytest.approx(
        judge(ranking, truth, names, shown), abs=0, nan_ok=True
    )


@examine
@given(queries(), st.lists(st.integers(0, 2), min_size=12, max_size=12), st.randoms(use_true_random=False))
def test_lines_of_tied_images_may_stand_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, query: Query, levels: list[int], random: object
) -> None:
    ranking, truth, _ = query
    if not ranking:
        return
    path = tmp_path_factory.mktemp("ties") / "run"
    scores = sorted(levels[: len(ranking)], reverse=True)
    lines = [f"q Q0 {id} {rank} {score} t" for rank, (id, score) in enumerate(zip(ranking, scores, strict=True))]
    random.shuffle(lines)  # type: ignore[attr-defined]
    path.write_text("\n".join(lines))
    assert judge(open_run(path).read("q")[1], truth, NAMES) == judge(ranking, truth, NAMES)


@examine
@given(queries())
def test_locscore_is_at_most_ap(query: Query) -> None:
    ranking, truth, shown = query
    values = judge(ranking, truth, ["ap", *LOCALISING], shown)
    assert all(values[name] <= values["ap"] + 1e-12 for name in LOCALISING)


@examine
@given(queries())
def test_locscore_is_ap_when_every_overlap_is_1(query: Query) -> None:
    ranking, truth, _ = query
    values = judge(ranking, truth, ["ap", *LOCALISING], truth.boxes)
    assert all(values[name] == pytest.approx(values["ap"], abs=1e-12) for name in LOCALISING)


@examine
@given(queries())
def test_mlocscore_is_the_mean_of_three_thresholds(query: Query) -> None:
    values = judge(*query[:2], LOCALISING, query[2])
    mean = (values["locscore@0.3"] + values["locscore@0.4"] + values["locscore@0.5"]) / 3
    assert values["mlocscore"] == pytest.approx(mean, abs=1e-12)


@examine
@given(queries())
def test_each_hit_moved_up_never_lowers_ap(query: Query) -> None:
    ranking, truth, _ = query
    better = sorted(ranking, key=lambda id: id not in truth.grades)
    for name in ("ap", "ap_trapezoid", "recall_fraction@3", "precision@3"):
        assert judge(better, truth, [name])[name] >= judge(ranking, truth, [name])[name] - 1e-12


@examine
@given(queries())
def test_trapezoid_agrees_with_a_walk_down_the_ranking(query: Query) -> None:
    ranking, truth, _ = query
    assert judge(ranking, truth, ["ap_trapezoid"])["ap_trapezoid"] == pytest.approx(walk(ranking, truth), abs=1e-12)


@examine
@given(queries(), st.integers(1, 12))
def test_revisited_precision_agrees_with_its_definition_on_whole_rankings(query: Query, k: int) -> None:
    ranking = query[0] + [id for id in IDS if id not in query[0]]
    ranks = [rank for rank, id in enumerate(ranking, start=1) if id in query[1].grades]
    cutoff = min(k, max(ranks))
    name = f"precision_revisited@{k}"
    assert judge(ranking, query[1], [name])[name] == sum(rank <= cutoff for rank in ranks) / cutoff


@examine
@given(queries(), st.integers(1, 12))
def test_cutting_below_rank_k_changes_no_figure_at_k(query: Query, k: int) -> None:
    ranking, truth, _ = query
    kinds = ("ap", "recall", "recall_fraction", "precision", "precision_revisited")
    names = [f"{kind}@{k}" for kind in kinds]
    assert judge(ranking[:k], truth, names) == judge(ranking, truth, names)


def walk(ranking: list[str], truth: Judgement) -> float:
    """The revisited benchmark's AP, hit by hit: half the precision before and after each, over the positives."""
    area, found = 0.0, 0
    for seen, id in enumerate(ranking):
        if id in truth.grades:
            before = 1.0 if seen == 0 else found / seen
            found += 1
            area += (before + found / (seen + 1)) / 2 / len(truth.grades)
    return area
