"""API keys: read from a file or the environment, compared by digest. The service stores no key in plain text."""

import hashlib
import hmac
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from resight.errors import InputError

VARIABLE = "RESIGHT_API_KEY"
MIN_LENGTH = 16
NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True)
class Key:
    name: str
    digest: str  # SHA-256 of the key, in hex
    may_write: bool = True


@dataclass(frozen=True)
class Caller:
    """Who sends a request; without a name where the service requires no key."""

    name: str = ""
    may_write: bool = True


def read_keys(file: Path | None) -> tuple[Key, ...]:
    """Keys from lines `NAME KEY [read]` of a file, and from RESIGHT_API_KEY."""
    from_file = [_read_line(line, file) for line in _list_lines(file)] if file else []
    from_environment = os.environ.get(VARIABLE, "")
    keys = [*from_file, *([make_key("environment", from_environment)] if from_environment else [])]
    if len({key.name for key in keys}) < len(keys):
        raise InputError("two keys have the same name", expected="a different name for each key", fix="rename one")
    return tuple(keys)


def make_key(name: str, text: str, may_write: bool = True) -> Key:
    if len(text) < MIN_LENGTH or not text.isascii() or not text.isprintable() or " " in text:
        raise InputError(
            f"the key of {name} is too short, or contains characters that a header cannot carry",
            expected=f"at least {MIN_LENGTH} printable ASCII characters without spaces",
            actual=f"{len(text)} characters",
            fix="generate one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    return Key(name, _digest(text), may_write)


def find_key(keys: Sequence[Key], text: str) -> Key | None:
    """Compare with every key, each in constant time: the duration reveals nothing about the keys."""
    digest = _digest(text)
    found = [key for key in keys if hmac.compare_digest(key.digest, digest)]
    return found[0] if found else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _list_lines(file: Path) -> list[str]:
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read the key file {file}",
            expected="a text file with lines NAME KEY [read]",
            actual=str(error),
            fix="check the path and its permissions",
        ) from error
    return [line for line in lines if line and not line.startswith("#")]


def _read_line(line: str, file: Path | None) -> Key:
    name, *rest = line.split()
    if not NAME.fullmatch(name) or len(rest) not in (1, 2) or rest[1:] not in ([], ["read"]):
        raise InputError(
            f"invalid line in the key file {file}",
            expected="NAME KEY, or NAME KEY read for a read-only key",
            actual=f"a line of {len(line.split())} words that begins with {name[:8]!r}",
            fix="correct that line",
        )
    return make_key(name, rest[0], may_write=len(rest) == 1)
