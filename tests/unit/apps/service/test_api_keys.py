import os
from dataclasses import replace
from pathlib import Path

import pytest

from resight.apps.service import api_keys, auth
from resight.errors import InputError

LONG, OTHER = "k" * 20, "o" * 20


def write(file: Path, text: str, mode: int = 0o600) -> None:
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)


def test_a_key_file_names_keys_and_says_which_may_only_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(api_keys.VARIABLE, raising=False)
    file = tmp_path / "keys"
    write(file, f"# comment\n\nanna {LONG}\nben {OTHER} read\n")
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
    "line",
    [
        "anna",
        f"anna {LONG} write",
        "anna short",
        f"an/na {LONG}",
        f"anna {LONG}\nanna {OTHER}",
        f"anna {LONG} expires=soon",
        f"anna {LONG} collections=",
        f"anna {LONG} read read",
        f"anna {LONG} read=no",
        "anna sha256:abc",
    ],
)
def test_a_bad_key_file_is_refused_without_showing_a_key(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(api_keys.VARIABLE, raising=False)
    file = tmp_path / "keys"
    write(file, line)
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


def test_a_made_key_is_stored_as_a_digest_and_opens_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(api_keys.VARIABLE, raising=False)
    file = tmp_path / "keys"
    text, made = api_keys.generate_key("anna", may_write=False, collections=["a", "b"], days=90)
    api_keys.append_key(made, file)
    second, other = api_keys.generate_key("ben")
    api_keys.append_key(other, file)
    with pytest.raises(InputError, match="anna"):
        api_keys.append_key(made, file)
    assert text not in file.read_text() and file.stat().st_mode & 0o077 == 0
    anna, ben = api_keys.read_keys(file)
    assert (anna, ben) == (made, other) and (anna.collections, anna.may_write) == (("a", "b"), False)
    assert api_keys.find_key([anna, ben], text) == anna and api_keys.find_key([anna, ben], second) == ben
    assert not caplog.records, "a plain key would be warned of"
    with pytest.raises(InputError):
        api_keys.generate_key("no name")


def test_a_plain_key_is_accepted_with_a_warning_that_does_not_show_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(api_keys.VARIABLE, raising=False)
    write(tmp_path / "keys", f"anna {LONG}")
    assert api_keys.read_keys(tmp_path / "keys")
    assert "plain text" in caplog.text and LONG not in caplog.text


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_a_key_file_of_others_is_refused(tmp_path: Path, mode: int) -> None:
    write(tmp_path / "keys", f"anna {LONG}", mode)
    with pytest.raises(InputError) as caught:
        api_keys.read_keys(tmp_path / "keys")
    assert caught.value.fix.startswith("chmod 600")


def test_an_expired_key_opens_nothing_nor_does_its_session() -> None:
    key = replace(api_keys.make_key("anna", LONG), expires=1000.0)
    assert api_keys.find_key([key], LONG) is None
    cookie = auth.sign_session(key, "secret", now=900.0)
    assert auth.verify_session(cookie, "secret", [key], now=999.0) == key
    assert auth.verify_session(cookie, "secret", [key], now=1001.0) is None
