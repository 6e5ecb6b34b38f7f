from dataclasses import replace
from pathlib import Path

import pytest

from resight.apps.service import keys, sessions
from resight.errors import InputError

LONG, OTHER = "k" * 20, "o" * 20


def test_a_key_file_names_keys_and_says_which_may_only_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(keys.VARIABLE, raising=False)
    file = tmp_path / "keys"
    file.write_text(f"# comment\n\nanna {LONG}\nben {OTHER} read\n", encoding="utf-8")
    anna, ben = keys.read_keys(file)
    assert (anna.name, anna.may_write, ben.name, ben.may_write) == ("anna", True, "ben", False)
    assert keys.find_key((anna, ben), OTHER) == ben
    assert keys.find_key((anna, ben), OTHER + "x") is None
    assert LONG not in repr(anna)


def test_a_key_comes_from_the_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(keys.VARIABLE, LONG)
    (key,) = keys.read_keys(None)
    assert keys.find_key((key,), LONG) == key


@pytest.mark.parametrize(
    "line", ["anna", f"anna {LONG} write", "anna short", f"an/na {LONG}", f"anna {LONG}\nanna {OTHER}"]
)
def test_a_bad_key_file_is_refused_without_showing_a_key(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(keys.VARIABLE, raising=False)
    file = tmp_path / "keys"
    file.write_text(line, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        keys.read_keys(file)
    assert LONG not in str(caught.value)


def test_a_session_stands_for_its_key_until_it_ends() -> None:
    key = keys.make_key("anna", LONG)
    cookie = sessions.sign(key, "secret", now=1000.0)
    assert sessions.verify(cookie, "secret", [key], now=1000.0 + sessions.LIFETIME - 1) == key
    assert sessions.verify(cookie, "secret", [key], now=1000.0 + sessions.LIFETIME + 1) is None


def test_a_forged_session_or_one_of_a_replaced_key_is_nobody() -> None:
    key = keys.make_key("anna", LONG)
    cookie = sessions.sign(key, "secret")
    content, _, seal = cookie.partition(".")
    replaced = keys.make_key("anna", OTHER)
    for forged in (sessions.sign(key, "other"), f"{content}.", f".{seal}", f"{content}A.{seal}", "", ".", "é.ü", "a.b"):
        assert sessions.verify(forged, "secret", [key]) is None
    assert sessions.verify(cookie, "secret", [replaced]) is None
    assert sessions.verify(cookie, "secret", [replace(key, name="ben")]) is None
