"""Downloads over HTTP, from a server on this machine that cuts, stalls, lies and sends other things."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.download_server import Served, Server, serve_files

from resight.data import http_download
from resight.data.http_download import Patience, ask_size, check_space, fetch, fetch_checksum, hash_file
from resight.errors import InputError, StorageError

DATA = np.random.default_rng(0).bytes(300_000)
SHA = f"sha256:{hashlib.sha256(DATA).hexdigest()}"
QUICK = Patience(timeout=5.0, attempts=3, pause=0.0)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")
    with serve_files({"/a.bin": Served(DATA)}) as served:
        yield served


def leave_part(path: Path, url: str, content: bytes, mark: str = '"one"') -> None:
    """What a stopped download leaves."""
    path.with_name("a.bin.part").write_bytes(content)
    path.with_name("a.bin.part.json").write_text(json.dumps({"url": url, "mark": mark}))


def test_a_file_is_fetched_checked_and_nothing_else_is_left(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    fetch(f"{server.url}/a.bin", tmp_path / "a.bin", SHA, lambda done, total: seen.append((done, total)), QUICK)
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]
    assert seen[-1] == (len(DATA), len(DATA))


def test_a_download_that_stopped_goes_on_where_it_was(server: Server, tmp_path: Path) -> None:
    leave_part(tmp_path / "a.bin", f"{server.url}/a.bin", DATA[:120_000])
    fetch(f"{server.url}/a.bin", tmp_path / "a.bin", SHA, patience=QUICK)
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert server.ranges("/a.bin") == ["bytes=120000-"]


def test_connections_that_break_are_opened_again_for_the_rest(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"].cuts = [50_000, 1_000, 1_000, 1_000, 1_000]  # more cuts than attempts, but each brings more
    fetch(f"{server.url}/a.bin", tmp_path / "a.bin", SHA, patience=QUICK)
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert server.ranges("/a.bin") == [
        *("", "bytes=50000-", "bytes=51000-", "bytes=52000-", "bytes=53000-", "bytes=54000-")
    ]


def test_a_server_that_never_sends_more_is_given_up_and_the_part_stays(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"].cuts = [50_000, *[0] * 20]
    with pytest.raises(InputError, match="broke off") as refused:
        fetch(f"{server.url}/a.bin", tmp_path / "a.bin", SHA, patience=QUICK)
    assert "50,000 bytes so far" in refused.value.actual and "goes on where it stopped" in refused.value.fix
    assert (tmp_path / "a.bin.part").read_bytes() == DATA[:50_000]
    assert not (tmp_path / "a.bin").exists()
    server.files["/a.bin"].cuts = []
    fetch(f"{server.url}/a.bin", tmp_path / "a.bin", SHA, patience=QUICK)
    assert (tmp_path / "a.bin").read_bytes() == DATA


def test_a_server_that_falls_silent_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"].stall = 2.0
    fetch(f"{server.url}/a.bin", tmp_path / "a.bin", SHA, patience=Patience(timeout=0.3, attempts=3, pause=0.0))
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert server.ranges("/a.bin") == ["", "bytes=150000-"]


def test_a_body_that_is_shorter_than_announced_is_no_file(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"].extra_length = 7
    with pytest.raises(InputError, match="broke off") as refused:
        fetch(f"{server.url}/a.bin", tmp_path / "a.bin", patience=QUICK)
    assert "bytes so far" in refused.value.actual
    assert not (tmp_path / "a.bin").exists()


def test_a_server_without_ranges_sends_the_whole_file_again(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"].ranges = False
    leave_part(tmp_path / "a.bin", f"{server.url}/a.bin", b"x" * 1000)
    fetch(f"{server.url}/a.bin", tmp_path / "a.bin", SHA, patience=QUICK)
    assert (tmp_path / "a.bin").read_bytes() == DATA


@pytest.mark.parametrize("mark", ['"old"', ""])
def test_a_file_that_has_changed_since_is_fetched_from_the_start(server: Server, tmp_path: Path, mark: str) -> None:
    """By its ETag; without one, by the checksum."""
    leave_part(tmp_path / "a.bin", f"{server.url}/a.bin", b"x" * 1000, mark)
    fetch(f"{server.url}/a.bin", tmp_path / "a.bin", SHA, patience=QUICK)
    assert (tmp_path / "a.bin").read_bytes() == DATA


def test_a_part_of_another_address_is_not_used(server: Server, tmp_path: Path) -> None:
    leave_part(tmp_path / "a.bin", f"{server.url}/b.bin", DATA[:1000])
    fetch(f"{server.url}/a.bin", tmp_path / "a.bin", patience=QUICK)
    assert (tmp_path / "a.bin").read_bytes() == DATA
    assert server.ranges("/a.bin") == [""]


def test_a_range_that_was_not_asked_for_is_not_appended(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"].shift = 5
    leave_part(tmp_path / "a.bin", f"{server.url}/a.bin", DATA[:1000])
    fetch(f"{server.url}/a.bin", tmp_path / "a.bin", patience=QUICK)
    assert (tmp_path / "a.bin").read_bytes() == DATA


def test_a_part_that_is_complete_or_too_long(server: Server, tmp_path: Path) -> None:
    leave_part(tmp_path / "a.bin", f"{server.url}/a.bin", DATA)
    fetch(f"{server.url}/a.bin", tmp_path / "a.bin", SHA, patience=QUICK)
    assert (tmp_path / "a.bin").read_bytes() == DATA
    (tmp_path / "a.bin").unlink()
    leave_part(tmp_path / "a.bin", f"{server.url}/a.bin", DATA + b"more")
    fetch(f"{server.url}/a.bin", tmp_path / "a.bin", SHA, patience=QUICK)
    assert (tmp_path / "a.bin").read_bytes() == DATA


def test_a_wrong_checksum_deletes_the_download(server: Server, tmp_path: Path) -> None:
    wrong = "md5:" + "0" * 32
    with pytest.raises(InputError, match="not the file that was published") as refused:
        fetch(f"{server.url}/a.bin", tmp_path / "a.bin", wrong, patience=QUICK)
    assert refused.value.expected == wrong
    assert refused.value.actual.startswith(f"md5:{hashlib.md5(DATA, usedforsecurity=False).hexdigest()}")
    assert list(tmp_path.iterdir()) == []
    assert server.ranges("/a.bin") == [""]


def test_a_wrong_checksum_and_cuts_end_as_well(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"].cuts = [1000] * 4
    with pytest.raises(InputError, match="not the file that was published"):
        fetch(f"{server.url}/a.bin", tmp_path / "a.bin", "md5:" + "0" * 32, patience=QUICK)


def test_a_file_without_an_announced_length(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"].length = False
    fetch(f"{server.url}/a.bin", tmp_path / "a.bin", SHA, patience=QUICK)
    assert (tmp_path / "a.bin").read_bytes() == DATA


@pytest.mark.parametrize(("status", "word"), [(404, "Not Found"), (403, "Forbidden"), (401, "Unauthorized")])
def test_a_refusal_of_the_server_ends_at_once(server: Server, tmp_path: Path, status: int, word: str) -> None:
    server.files["/a.bin"].statuses = [status] * 9
    with pytest.raises(InputError, match="does not give out") as refused:
        fetch(f"{server.url}/a.bin", tmp_path / "a.bin", patience=QUICK)
    assert refused.value.actual == f"HTTP {status} {word}"
    assert refused.value.expected and refused.value.fix
    assert len(server.requests) == 1


def test_a_server_that_is_busy_is_asked_again_when_it_says(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(http_download, "sleep", waited.append)
    server.files["/a.bin"].statuses = [503, 429]
    server.files["/a.bin"].headers = {"Retry-After": "7"}
    fetch(f"{server.url}/a.bin", tmp_path / "a.bin", SHA, patience=QUICK)
    assert waited == [7.0, 7.0]
    server.files["/a.bin"].statuses = [500] * 9
    (tmp_path / "a.bin").unlink()
    with pytest.raises(InputError, match="broke off") as refused:
        fetch(f"{server.url}/a.bin", tmp_path / "a.bin", SHA, patience=QUICK)
    assert "HTTP 500" in refused.value.actual


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/octet-stream"])
def test_a_web_page_instead_of_the_file_is_refused(server: Server, tmp_path: Path, kind: str) -> None:
    server.files["/a.bin"] = Served(b"\n<!DOCTYPE html><title>Please log in</title>", kind=kind)
    with pytest.raises(InputError, match="web page instead of"):
        fetch(f"{server.url}/a.bin", tmp_path / "a.bin", patience=QUICK)
    assert not (tmp_path / "a.bin").exists()
    server.files["/a.bin"] = Served(DATA)
    fetch(f"{server.url}/a.bin", tmp_path / "a.bin", SHA, patience=QUICK)


@pytest.mark.parametrize(("name", "code"), [("a.csv", "gzip"), ("a.json", "br")])
def test_a_body_that_is_packed_on_the_way_is_refused(server: Server, tmp_path: Path, name: str, code: str) -> None:
    server.files[f"/{name}"] = Served(DATA, headers={"Content-Encoding": code})
    with pytest.raises(InputError, match="on the way"):
        fetch(f"{server.url}/{name}", tmp_path / name, patience=QUICK)
    server.files["/a.tgz"] = Served(DATA, headers={"Content-Encoding": "x-gzip"})  # as Apache names every such file
    fetch(f"{server.url}/a.tgz", tmp_path / "a.tgz", SHA, patience=QUICK)


def test_redirects_are_followed_over_http_alone(server: Server, tmp_path: Path) -> None:
    server.files["/moved.bin"] = Served(b"", redirect=f"{server.url}/a.bin")
    fetch(f"{server.url}/moved.bin", tmp_path / "a.bin", SHA, patience=QUICK)
    for target in (f"file://{tmp_path}/a.bin", "ftp://127.0.0.1/a.bin"):
        server.files["/bad.bin"] = Served(b"", redirect=target)
        with pytest.raises(InputError, match=r"unsafe address|not allowed"):
            fetch(f"{server.url}/bad.bin", tmp_path / "b.bin", patience=QUICK)
    server.files["/loop.bin"] = Served(b"", redirect=f"{server.url}/loop.bin")
    with pytest.raises(InputError, match="does not give out"):
        fetch(f"{server.url}/loop.bin", tmp_path / "b.bin", patience=QUICK)


def test_an_https_address_is_never_followed_to_http() -> None:
    request = http_download.urllib.request.Request("https://example.org/a")
    with pytest.raises(InputError, match="unsafe address"):
        http_download._SafeRedirects().redirect_request(request, None, 302, "", {}, "http://example.org/a")


def test_nobody_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with serve_files({}) as gone:
        pass
    with pytest.raises(InputError, match="broke off") as refused:
        fetch(f"{gone.url}/a.bin", tmp_path / "a.bin", patience=QUICK)
    assert "refused" in refused.value.actual
    with pytest.raises(InputError, match=r"cannot reach nowhere\.invalid"):
        fetch("http://nowhere.invalid/a.bin", tmp_path / "a.bin", patience=QUICK)
    with pytest.raises(InputError, match="cannot download ftp"):
        fetch("ftp://127.0.0.1/a.bin", tmp_path / "a.bin", patience=QUICK)
    assert ask_size(f"{gone.url}/a.bin", QUICK) is None


def test_a_disk_that_is_too_small_is_refused_before_anything_is_written(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = http_download.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(
        http_download.shutil, "disk_usage", lambda _: usage._replace(free=http_download.SPARE + 299_999)
    )
    with pytest.raises(StorageError, match="too small") as refused:
        fetch(f"{server.url}/a.bin", tmp_path / "a.bin", patience=QUICK)
    assert refused.value.actual == "100,299,999 bytes"
    assert list(tmp_path.iterdir()) == []
    check_space(tmp_path / "not" / "made", 299_999, "it")


def test_the_size_comes_from_the_server(server: Server) -> None:
    assert ask_size(f"{server.url}/a.bin", QUICK) == 300_000
    server.files["/a.bin"].head = False
    assert ask_size(f"{server.url}/a.bin", QUICK) is None
    server.files["/b.bin"] = Served(DATA, length=False)
    assert ask_size(f"{server.url}/b.bin", QUICK) is None


@pytest.mark.parametrize(
    "text",
    [
        f"{SHA[7:]}\n",
        f"{SHA[7:]}  a.bin\n",
        f"{'0' * 64}  https://host/b.bin\n{SHA[7:].upper()}  https://host/x/a.bin\n",
        f"{'0' * 64} *b.bin\n{SHA[7:]} *a.bin\n",
    ],
)
def test_checksums_come_from_a_file_of_the_makers(server: Server, text: str) -> None:
    server.files["/sums.txt"] = Served(text.encode(), statuses=[503])
    assert fetch_checksum(f"sha256:{server.url}/sums.txt", "a.bin", QUICK) == SHA


@pytest.mark.parametrize("text", ["", "moved", f"{'0' * 64} b.bin\n{'1' * 64} c.bin\n", "0" * 32])
def test_a_file_without_the_checksum_is_refused(server: Server, text: str) -> None:
    server.files["/sums.txt"] = Served(text.encode())
    with pytest.raises(InputError, match=r"no checksum of a\.bin"):
        fetch_checksum(f"sha256:{server.url}/sums.txt", "a.bin", QUICK)


def test_without_a_checksum_nothing_is_hashed(tmp_path: Path) -> None:
    assert hash_file(tmp_path / "missing", "") == ""


def test_an_address_may_hold_spaces_and_any_letters(server: Server) -> None:
    server.files["/caf%C3%A9%20bar.png"] = Served(b"pixels")
    assert http_download.read_bytes(f"{server.url}/café bar.png", 100, 5) == b"pixels"
    assert http_download.read_bytes(f"{server.url}/caf%C3%A9%20bar.png", 100, 5) == b"pixels"


@pytest.mark.parametrize(
    "address", ["http://", "http://[::1/a.png", "http://a..b/c", "http://127.0.0.1:x/a", "file:///a"]
)
def test_what_is_no_address_is_an_error_in_words(address: str) -> None:
    with pytest.raises(InputError, match="cannot download"):
        http_download.read_bytes(address, 100, 5)
