from dataclasses import replace
from pathlib import Path

import pytest

from resight.apps.service import api_keys, auth
from resight.errors import InputError

LONG, OTHER = "k" * 20, "o" * 20


def test_a_key_file_names_keys_and_says_which_may_only_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(api_keys.VARIABLE, raising=False)
    file = tmp_path / "keys"
    file.write_text(f"# comment\n\nanna {LONG}\nben {OTHER} read\n", encoding="utf-8")
    anna, ben = api_keys.read_keys(file)
    assert (anna.name, anna.may_write, ben.name, ben.may_write) == ("anna", True, "ben", False)
    assert api_keys.find_key((anna, ben), OTHER) == ben
    assert api_keys.find_key((anna, ben), OTHER + "x") is None
    assert LONG not in repr(anna)


def test_a_key_comes_from_the_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(api_keys.VARIABLE, LONG)
    (key,) = api_keys.read_keys(None)
    assert api_keys.find_key((key,), LONG) == key


@pytest.mark.parametrize(
    "line", ["anna", f"anna {LONG} write", "anna short", f"an/na {LONG}", f"anna {LONG}\nanna {OTHER}"]
)
def test_a_bad_key_file_is_refused_without_showing_a_key(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(api_keys.VARIABLE, raising=False)
    file = tmp_path / "keys"
    file.write_text(line, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        api_keys.read_keys(file)
    assert LONG not in str(caught.value)


def test_a_session_stands_for_its_key_until_it_ends() -> None:
    key = api_keys.make_key("anna", LONG)
    cookie = auth.sign_session(key, "secret", now=1000.0)
    assert auth.verify_session(cookie, "secret", [key], now=1000.0 + auth.LIFETIME - 1) == key
    assert auth.verify_session(cookie, "secret", [key], now=1000.0 + auth.LIFETIME + 1) is None


def test_a_forged_session_or_one_of_a_replaced_key_is_nobody() -> None:
    key = api_keys.make_key("anna", LONG)
    cookie = auth.sign_session(key, "secret")
    content, _, seal = cookie.partition(".")
    replaced = api_keys.make_key("anna", OTHER)
    for forged in (
        auth.sign_session(key, "other"),
        f"{content}.",
        f".{seal}",
        f"{content}A.{seal}",
        "",
        ".",
        "é.ü",
        "a.b",
    ):
        assert auth.verify_session(forged, "secret", [key]) is None
    assert auth.verify_session(cookie, "secret", [replaced]) is None
    assert auth.verify_session(cookie, "secret", [replace(key, name="ben")]) is None
