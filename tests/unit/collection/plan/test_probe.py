"""What one image takes, measured on few."""

import pytest

from resight import recipe as recipes
from resight.collection.plan.probe import IndexRates, Probe, estimate, find_rates, probe

TOKEN_BYTES = 32 * 208  # 32 tokens an image of 208 dimensions, a byte each


@pytest.fixture(scope="module")
def tokens() -> Probe:
    return probe(recipes.load("tokens"), None)


def test_made_pictures_are_not_blank(tokens: Probe) -> None:
    assert (tokens.probed, tokens.unreadable, tokens.images) == (8, 0, None)
    assert tokens.query_bytes >= TOKEN_BYTES
    assert tokens.row_bytes > TOKEN_BYTES


def test_an_index_takes_what_its_tokens_take(tokens: Probe) -> None:
    """int8 tokens, and fp32 ones beside them for the proof."""
    (index,) = tokens.indexes
    assert 5 * TOKEN_BYTES <= index.bytes < 5.5 * TOKEN_BYTES
    assert 0 < index.scan_core_seconds < 1e-3


def test_the_index_of_a_reranker_counts_but_no_query_scans_it(tokens: Probe) -> None:
    settings = ['rerankers=[{name="late", candidates=100, kind="int8"}]']
    reranked = probe(recipes.load("tokens", settings), None).indexes
    assert len(reranked) == len(tokens.indexes) + 1
    assert TOKEN_BYTES <= reranked[-1].bytes < 1.2 * TOKEN_BYTES
    assert reranked[-1].scan_core_seconds == 0


def test_rates_add_up_over_the_indexes() -> None:
    found = Probe(None, 8, 0, 1.0, 2.0, 3000.0, 400.0, (IndexRates(10, 0.1, 1e-6), IndexRates(20, 0.2, 0.0)))
    rates = find_rates(found)
    assert (rates.encode_core_seconds, rates.query_bytes) == (2.0, 400.0)
    assert (rates.index_bytes, rates.scan_core_seconds, rates.store_bytes) == (30, 1e-6, 4500)
    assert rates.index_core_seconds == pytest.approx(0.3)


def test_a_plan_without_a_number_is_for_a_thousand() -> None:
    found = estimate(recipes.load("tokens"), None)
    assert found.images == 1000
    assert found.store_bytes == pytest.approx(1000 * found.rates.store_bytes, abs=1)
