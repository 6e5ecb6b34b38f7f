"""Requests per client, and wrong keys per address."""

import pytest

from resight.apps.service import rate_limit
from resight.apps.service.api_keys import make_key
from resight.apps.service.error_responses import ApiError
from resight.apps.service.rate_limit import WRONG_KEYS, WRONG_RATE, KeyGuard, RateLimit

ANNA, BEN = "a" * 20, "b" * 20


def test_a_client_may_ask_in_a_burst_and_then_at_its_rate() -> None:
    limit = RateLimit(2.0)  # a burst of ten seconds' worth: 20
    assert [limit.take("a", now=0.0) for _ in range(20)] == [0.0] * 20
    assert limit.take("a", now=0.0) == pytest.approx(0.5)
    assert limit.take("b", now=0.0) == 0.0
    assert limit.take("a", now=0.5) == 0.0
    assert limit.take("a", now=0.5) == pytest.approx(0.5)


def test_without_a_rate_there_is_no_limit() -> None:
    limit = RateLimit(0.0)
    assert not any(limit.take("a", now=0.0) for _ in range(1000))


def test_only_the_last_clients_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "REMEMBERED", 2)
    limit = RateLimit(0.1)  # a burst of one
    assert [limit.take(client, now=0.0) for client in "abc"] == [0.0] * 3
    assert limit.take("a", now=0.0) == 0.0  # forgotten, so it begins anew
    assert limit.take("c", now=0.0) > 0


def exhaust(guard: KeyGuard, address: str) -> None:
    for number in range(WRONG_KEYS):
        assert guard.find(f"wrong-{number}", address, now=0.0) is None


@pytest.mark.parametrize("address", ["192.0.2.1", "127.0.0.1"])
def test_wrong_keys_are_slowed_down_per_address_also_on_this_machine(address: str) -> None:
    guard = KeyGuard([make_key("anna", ANNA), make_key("ben", BEN)])
    assert guard.find(BEN, address, now=0.0)
    exhaust(guard, address)
    for guess in ("wrong", ANNA):
        with pytest.raises(ApiError) as caught:
            guard.find(guess, address, now=0.0)
        assert caught.value.status == 429 and caught.value.headers["Retry-After"] == "10"
    assert guard.find(BEN, address, now=0.0), "who was let in before goes on"
    assert guard.find(ANNA, "192.0.2.2", now=0.0), "and so do clients of other addresses"
    assert guard.find(ANNA, address, now=1 / WRONG_RATE)


def test_right_keys_are_never_slowed_down() -> None:
    guard = KeyGuard([make_key("anna", ANNA)])
    assert all(guard.find(ANNA, "192.0.2.1", now=0.0) for _ in range(10 * WRONG_KEYS))


def test_one_client_with_many_addresses_of_its_network_is_one_client() -> None:
    guard = KeyGuard([make_key("anna", ANNA)])
    for number in range(WRONG_KEYS):
        guard.find("wrong", f"2001:db8::{number:x}", now=0.0)
    with pytest.raises(ApiError):
        guard.find("wrong", "2001:db8::ffff", now=0.0)
