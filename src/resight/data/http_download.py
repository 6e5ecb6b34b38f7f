"""One file over HTTP: an address in, a complete and checked file out (`fetch`).

The body goes to NAME.part beside the file. NAME.part.json keeps the address and the server's mark of that version (ETag
or date), so that a later call asks for the rest alone, and starts again if the file has changed. A connection that
breaks or stalls is opened again, a few times without progress. The part becomes the file once it has the announced
length and the checksum; without a checksum, the length is all that is checked.
"""

import contextlib
import email.utils
import hashlib
import http.client
import json
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any, BinaryIO
from urllib.parse import quote, urlsplit, urlunsplit

from resight.errors import InputError, StorageError
from resight.files.documents import load_json

TIMEOUT = 60.0  # seconds without a byte
ATTEMPTS = 5  # in a row that bring nothing new
LONGEST_WAIT = 60.0  # seconds that a server may ask for
CHUNK = 1 << 20
SIGNS = "%/:;=&?,@+$!~*'()[]"  # of an address, which stay as they are
SPARE = 100_000_000  # bytes that stay free
SHORT = 1 << 20  # bytes of a list of checksums at most: one that is longer is none
PAGE = re.compile(rb"\s*(<!doctype html|<html|<head)", re.IGNORECASE)
RETRY = (408, 425, 429, 500, 502, 503, 504)
Progress = Callable[[int, int], None]  # bytes so far, and in all


@dataclass(frozen=True)
class Patience:
    """How long `fetch` waits."""

    timeout: float = TIMEOUT
    attempts: int = ATTEMPTS
    pause: float = 1.0  # seconds before the second attempt; twice as long before each further one


class _Broken(Exception):
    """The connection broke; another attempt may go on."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


def fetch(
    url: str,
    path: Path,
    checksum: str = "",
    progress: Progress = lambda *_: None,
    patience: Patience = Patience(),  # noqa: B008 - frozen
) -> None:
    """Download `url` to `path`, which must not exist; `checksum` is "sha256:…", "md5:…" or empty."""
    part = path.with_name(f"{path.name}.part")
    note = path.with_name(f"{path.name}.part.json")
    resumed, restarted = part.exists(), False
    failures, most = 0, -1
    while True:
        try:
            _attempt(url, part, note, progress, patience)
        except _Broken as error:
            size = part.stat().st_size if part.exists() else 0
            failures = 0 if size > most >= 0 else failures + 1
            most, resumed = max(size, most), resumed or size > 0
            if failures >= patience.attempts:
                raise InputError(
                    f"the download of {url} broke off",
                    expected="an answer of the server, to the end",
                    actual=f"{error} ({size:,} bytes so far)",
                    fix="run the command again: it goes on where it stopped",
                ) from error
            sleep(error.wait or patience.pause * 2 ** max(failures - 1, 0))
            continue
        found = hash_file(part, checksum)
        if found == checksum:
            break
        _remove(part, note)
        if restarted or not resumed:
            raise InputError(
                f"{url} is not the file that was published",
                expected=checksum,
                actual=f"{found}; the download is deleted",
                fix="try again later; if it stays so, the makers have changed the file, or the server is not theirs",
            )
        restarted, most = True, -1  # its beginning may have been another version: once more from the start
    part.replace(path)
    note.unlink(missing_ok=True)


def read_bytes(url: str, most: int, seconds: float) -> bytes:
    """A small file in memory: at most so many bytes, which arrive within so many seconds."""
    deadline = monotonic() + seconds
    parts: list[bytes] = []
    held = 0
    try:
        with _open(url, {}, seconds) as answer:
            while part := answer.read1(CHUNK):  # what has arrived: a slow server cannot outlast the deadline
                parts.append(part)
                held += len(part)
                if held > most:
                    raise InputError(
                        f"the file at {url} is too large",
                        expected=f"at most {most:,} bytes",
                        actual="more",
                        fix="download it, reduce it, and give its path",
                    )
                if monotonic() > deadline:
                    raise _Broken(f"{held:,} bytes so far")
            announced = answer.headers.get("Content-Length", "")
        if announced.isdecimal() and held < int(announced):
            raise _Broken(f"the connection broke after {held:,} of {int(announced):,} bytes")
    except (_Broken, OSError, http.client.HTTPException) as error:
        raise InputError(
            f"{url} was not read",
            expected=f"the whole file within {seconds:g} seconds",
            actual=_describe(error),
            fix="try again, or download it and give its path",
        ) from error
    return b"".join(parts)


def ask_size(url: str, patience: Patience = Patience()) -> int | None:  # noqa: B008 - frozen
    """The size that the server announces; None if it does not say, or does not answer."""
    try:
        with _open(url, {}, patience.timeout, "HEAD") as answer:
            length = answer.headers.get("Content-Length", "")
            return int(length) if length.isdecimal() else None
    except (InputError, _Broken, OSError, http.client.HTTPException):
        return None


def fetch_checksum(source: str, name: str, patience: Patience = Patience()) -> str:  # noqa: B008 - frozen
    """The checksum of the file `name`, from "md5:URL": that one file's checksum, or a list with names."""
    kind, _, url = source.partition(":")
    digits = hashlib.new(kind, usedforsecurity=False).digest_size * 2
    for remaining in reversed(range(patience.attempts)):
        try:
            with _open(url, {}, patience.timeout) as answer:
                text = answer.read(SHORT).decode("utf-8", "replace")
            break
        except (_Broken, OSError, http.client.HTTPException) as error:
            if not remaining:
                raise _unreachable(url, error) from error
            sleep(patience.pause)
    lines = [line.split() for line in text.splitlines()]
    sums = [
        (words[0].lower(), words[-1]) for words in lines if words and re.fullmatch(f"[0-9a-fA-F]{{{digits}}}", words[0])
    ]
    named = [sum for sum, file in sums if file.lstrip("*").rpartition("/")[2] == name]
    alone = [sum for sum, _ in sums] if len(sums) == 1 else []
    if not (named or alone):
        raise InputError(
            f"{url} has no checksum of {name}",
            expected=f"a line with {digits} hexadecimal digits, alone or with that name",
            actual=text[:100].strip() or "an empty file",
            fix="open the address in a browser: the file may have moved",
        )
    return f"{kind}:{(named or alone)[0]}"


def hash_file(path: Path, checksum: str) -> str:
    """The checksum of a file, of the same kind as `checksum`; empty if that is."""
    kind = checksum.partition(":")[0]
    if not kind:
        return ""
    with path.open("rb") as file:
        return f"{kind}:{hashlib.file_digest(file, lambda: hashlib.new(kind, usedforsecurity=False)).hexdigest()}"


def check_space(folder: Path, needed: int, what: str) -> None:
    """Refuse if the disk below `folder`, which need not exist yet, has less than `needed` bytes and a reserve."""
    existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    if free < needed + SPARE:
        raise StorageError(
            f"the disk is too small for {what}",
            expected=f"{needed + SPARE:,} bytes free at {folder}",
            actual=f"{free:,} bytes",
            fix="free some space, choose another folder, or download less with --only",
        )


def _attempt(url: str, part: Path, note: Path, progress: Progress, patience: Patience) -> None:
    """Fetch what is missing of `part`; _Broken if something still is."""
    start, mark, announced = _read_note(url, part, note)
    headers = {"Range": f"bytes={start}-", **({"If-Range": mark} if mark else {})} if start else {}
    with _open(url, headers, patience.timeout) as answer:
        if answer.status == 416:
            if answer.headers.get("Content-Range") == f"bytes */{start}" and announced in (start, None):
                return  # it was complete
            _remove(part, note)
            raise _Broken("the server has no such range")
        start, total = _agree(answer, start, part, note)
        _check_page(url, answer.headers.get("Content-Type", ""), b"")
        _check_encoding(url, answer.headers.get("Content-Encoding", ""))
        if total is not None:
            check_space(part.parent, total - start, url)
        try:
            note.write_text(json.dumps({"url": url, "mark": _read_mark(answer), "bytes": total}), encoding="utf-8")
            with part.open("ab" if start else "wb") as file:
                done = _copy(url, answer, file, start, total, progress)
        except OSError as error:
            raise StorageError(
                f"cannot write {part}",
                expected="a writable folder with free space",
                actual=str(error),
                fix="choose another",
            ) from error
    if total is not None and done != total:
        if done > total:
            _remove(part, note)
        raise _Broken(f"{done:,} of {total:,} bytes arrived")


def _copy(url: str, answer: Any, file: BinaryIO, done: int, total: int | None, progress: Progress) -> int:
    while True:
        try:
            some = answer.read1(CHUNK)
        except (OSError, http.client.HTTPException) as error:
            raise _Broken(_describe(error)) from error
        if not some:
            return done
        if done == 0:
            try:
                _check_page(url, "", some)
            except InputError:
                file.truncate(0)
                raise
        file.write(some)
        file.flush()  # so that a killed process loses nothing
        done += len(some)
        progress(done, total or done)


def _agree(answer: Any, start: int, part: Path, note: Path) -> tuple[int, int | None]:
    """Where the body begins, and the length of the whole file if the server says it."""
    length = answer.headers.get("Content-Length", "")
    if answer.status == 200:
        return 0, int(length) if length.isdecimal() else None  # the whole file: no ranges, or another version
    span = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", answer.headers.get("Content-Range", ""))
    if answer.status != 206 or span is None or int(span[1]) != start:
        _remove(part, note)
        raise _Broken(f"the server answered {answer.status} with another range than asked for")
    return start, None if span[3] == "*" else int(span[3])


def _check_page(url: str, kind: str, start: bytes) -> None:
    if kind.startswith("text/html") or PAGE.match(start):
        raise InputError(
            f"the server sent a web page instead of {url}",
            expected="the file itself",
            actual=kind or "a text that begins as HTML",
            fix="open the address in a browser: the file may have moved, or needs an account",
        )


def _check_encoding(url: str, encoding: str) -> None:
    """Refuse a body that was packed on its way, against the request; some servers say so of every .gz file."""
    if encoding not in ("", "identity") and not urlsplit(url).path.endswith((".gz", ".tgz")):
        raise InputError(
            f"the server packs {url} on the way",
            expected="the file as it is",
            actual=f"Content-Encoding: {encoding}",
            fix="download it with a browser",
        )


def _open(url: str, headers: dict[str, str], timeout: float, method: str = "GET") -> Any:
    """The answer of the server: 200, 206 or 416; anything else is an error."""
    about = {"User-Agent": f"resight/{metadata.version('resight')}", "Accept-Encoding": "identity"}
    request = urllib.request.Request(_escape(url), headers={**about, **headers}, method=method)
    opener = urllib.request.build_opener(_SafeRedirects)
    try:
        return opener.open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == 416:
            return error
        with error:
            if error.code in RETRY:
                raise _Broken(
                    f"HTTP {error.code} {error.reason}", _read_wait(error.headers.get("Retry-After"))
                ) from error
            raise InputError(
                f"the server does not give out {url}",
                expected="the file",
                actual=f"HTTP {error.code} {error.reason}",
                fix="open the address in a browser: the file may have moved, or needs an account",
            ) from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, OSError) and not isinstance(error.reason, (ConnectionError, TimeoutError)):
            raise _unreachable(url, error.reason) from error  # no such host, no network, a wrong certificate
        raise _Broken(_describe(error.reason)) from error
    except (http.client.InvalidURL, ValueError) as error:  # e.g. a port that is no number; also of a redirect
        raise _refuse_address(url, str(error)) from error
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(_describe(error)) from error


def _escape(url: str) -> str:
    """The address as HTTP writes it: a space as %20, ä as %C3%A4, and a host with such letters as xn--…"""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()  # refuses a..b, too
    except ValueError as error:
        raise _refuse_address(url, str(error)) from error
    if parts.scheme not in ("http", "https") or not host:
        raise _refuse_address(url, url)
    if not parts.netloc.isascii():
        parts = parts._replace(netloc=host if parts.port is None else f"{host}:{parts.port}")
    return urlunsplit(parts._replace(path=quote(parts.path, SIGNS), query=quote(parts.query, SIGNS)))


def _refuse_address(url: str, actual: str) -> InputError:
    return InputError(
        f"cannot download {url}", expected="an address of http:// or https://", actual=actual, fix="correct the address"
    )


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects over HTTP, and never from https to http."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        kinds = urlsplit(req.full_url).scheme, urlsplit(newurl).scheme
        if kinds not in (("http", "http"), ("http", "https"), ("https", "https")):
            raise InputError(
                f"{req.full_url} leads to an unsafe address",
                expected="a redirect to https://",
                actual=newurl,
                fix="open the address in a browser: the file may have moved",
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _read_note(url: str, part: Path, note: Path) -> tuple[int, str, int | None]:
    """Bytes of the part that can be kept, the mark of their version, and the announced length of the file."""
    try:
        known = load_json(note.read_text(encoding="utf-8"))
        if known["url"] == url and isinstance(known["mark"], str):
            return part.stat().st_size, known["mark"], known.get("bytes")
    except (OSError, ValueError, KeyError, TypeError):
        pass
    _remove(part, note)
    return 0, "", None


def _read_mark(answer: Any) -> str:
    """A strong ETag, or the date of the last change; If-Range takes no weak ETag."""
    etag = str(answer.headers.get("ETag", ""))
    return etag if etag.startswith('"') else str(answer.headers.get("Last-Modified", ""))


def _read_wait(text: str | None) -> float:
    """Seconds of a Retry-After, which is a number or a date."""
    if text is None:
        return 0.0
    if text.strip().isdecimal():
        return min(float(text), LONGEST_WAIT)
    with contextlib.suppress(TypeError, ValueError):
        return min(max(email.utils.parsedate_to_datetime(text).timestamp() - time(), 0.0), LONGEST_WAIT)
    return 0.0


def _remove(part: Path, note: Path) -> None:
    part.unlink(missing_ok=True)
    note.unlink(missing_ok=True)


def _describe(error: object) -> str:
    return str(error) or type(error).__name__


def _unreachable(url: str, error: BaseException) -> InputError:
    return InputError(
        f"cannot reach {urlsplit(url).netloc}",
        expected="a network, and a server that answers",
        actual=_describe(error),
        fix="check the network, and the variables http_proxy and https_proxy",
    )
