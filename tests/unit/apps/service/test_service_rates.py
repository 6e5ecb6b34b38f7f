import pytest

from resight.apps.service import auth
from resight.apps.service.auth import RateLimit


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
    monkeypatch.setattr(auth, "REMEMBERED", 2)
    limit = RateLimit(0.1)  # a burst of one
    assert [limit.take(client, now=0.0) for client in "abc"] == [0.0] * 3
    assert limit.take("a", now=0.0) == 0.0  # forgotten, so it begins anew
    assert limit.take("c", now=0.0) > 0
