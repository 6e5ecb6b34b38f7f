"""API keys: read from a file or the environment, compared by digest. The service stores no key in plain text.

A key file has one key per line. `resight keys make` writes such lines; they hold digests, so that a stolen file opens
nothing:

    NAME sha256:DIGEST [read] [collections=A,B] [expires=YYYY-MM-DD]

A line may also hold the KEY itself in place of the digest. Keys are long and random, so a plain SHA-256 cannot be
reversed by guessing.
"""

import hashlib
import hmac
import logging
import os
import re
import secrets
import stat
import time
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from resight.errors import InputError, StorageError

log = logging.getLogger("resight.service")
VARIABLE = "RESIGHT_API_KEY"
MIN_LENGTH = 16
NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
HASHED = "sha256:"
DIGEST = re.compile(r"[0-9a-f]{64}")
FORMAT = "NAME sha256:DIGEST [read] [collections=A,B] [expires=YYYY-MM-DD]"
OTHERS = stat.S_IRWXG | stat.S_IRWXO  # the permissions of all but the owner


@dataclass(frozen=True)
class Key:
    name: str
    digest: str  # SHA-256 of the key, in hex
    may_write: bool = True
    collections: tuple[str, ...] = ()  # names; empty: all
    expires: float | None = None  # seconds since 1970

    def is_expired(self, now: float | None = None) -> bool:
        return self.expires is not None and self.expires <= (time.time() if now is None else now)

    def to_line(self) -> str:
        """The line of a key file."""
        words = [self.name, f"{HASHED}{self.digest}"]
        words += [] if self.may_write else ["read"]
        words += [f"collections={','.join(self.collections)}"] if self.collections else []
        words += [] if self.expires is None else [f"expires={datetime.fromtimestamp(self.expires, UTC):%Y-%m-%d}"]
        return " ".join(words)


@dataclass(frozen=True)
class Caller:
    """Who sends a request; without a name where the service requires no key."""

    name: str = ""
    may_write: bool = True
    collections: tuple[str, ...] = ()  # that it may use; empty: all
    address: str = field(default="", compare=False)


CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)  # of the current request


def read_keys(file: Path | None) -> tuple[Key, ...]:
    """Keys from the lines of a file, and from RESIGHT_API_KEY."""
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
            fix="make one with `resight keys make`",
        )
    return Key(name, make_digest(text), may_write)


def generate_key(
    name: str, may_write: bool = True, collections: Sequence[str] = (), days: int | None = None
) -> tuple[str, Key]:
    """A new random key as text, and its entry for a key file. It ends at midnight (UTC) after `days`."""
    if not NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot name a key",
            expected="up to 64 letters, digits, dots, dashes and underscores",
            fix="choose another name",
        )
    text = secrets.token_urlsafe(32)
    end = None if days is None else _read_day(f"{datetime.now(UTC) + timedelta(days=days + 1):%Y-%m-%d}")
    return text, Key(name, make_digest(text), may_write, tuple(collections), end)


def append_key(key: Key, file: Path) -> None:
    """Add a key to a file, which is created for its owner only. A name that the file has already is an InputError."""
    known = [_read_line(line, file) for line in _list_lines(file)] if file.exists() else []
    if any(one.name == key.name for one in known):
        raise InputError(f"{file} has a key of the name {key.name}", fix="choose another name, or remove that line")
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as opened:
            opened.write(f"{key.to_line()}\n")
    except OSError as error:
        raise StorageError(
            f"cannot write the key file {file}", actual=str(error), fix="check the path and its permissions"
        ) from error


def find_key(keys: Sequence[Key], text: str) -> Key | None:
    """Compare with every key, each in constant time: the duration reveals nothing about the keys."""
    digest = make_digest(text)
    found = [key for key in keys if hmac.compare_digest(key.digest, digest)]
    return found[0] if found and not found[0].is_expired() else None


def make_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _list_lines(file: Path) -> list[str]:
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read the key file {file}",
            expected=f"a text file with lines {FORMAT}",
            actual=str(error),
            fix="check the path and its permissions",
        ) from error
    if os.name != "nt" and mode & OTHERS:
        raise InputError(
            f"other users of this machine may use the key file {file}",
            expected="a file for its owner only, mode 600",
            actual=f"mode {mode:o}",
            fix=f"chmod 600 {file}",
        )
    return [line for line in lines if line and not line.startswith("#")]


def _read_line(line: str, file: Path | None) -> Key:
    name, *rest = line.split()
    secret, *options = rest or [""]
    given = dict(option.partition("=")[::2] for option in options)
    if (
        not NAME.fullmatch(name)
        or not secret
        or len(given) < len(options)
        or not given.keys() <= {"read", "collections", "expires"}
        or given.get("read")
    ):
        raise _reject_line(line, file)
    try:
        expires = _read_day(given["expires"]) if "expires" in given else None
    except ValueError as error:
        raise _reject_line(line, file) from error
    collections = tuple(one for one in given.get("collections", "").split(",") if one)
    if "collections" in given and not collections:  # no names would mean all
        raise _reject_line(line, file)
    return Key(name, _read_digest(name, secret, file), "read" not in given, collections, expires)


def _read_digest(name: str, secret: str, file: Path | None) -> str:
    if not secret.startswith(HASHED):
        log.warning("the key of %s lies in plain text in %s; `resight keys make` stores digests only", name, file)
        return make_key(name, secret).digest
    digest = secret.removeprefix(HASHED)
    if not DIGEST.fullmatch(digest):
        raise _reject_line(f"{name} {HASHED}…", file)
    return digest


def _read_day(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()


def _reject_line(line: str, file: Path | None) -> InputError:
    return InputError(
        f"invalid line in the key file {file}",
        expected=FORMAT,
        actual=f"a line of {len(line.split())} words that begins with {line.split()[0][:8]!r}",
        fix="correct that line, or make a new one with `resight keys make`",
    )
