"""How often a client asks, how long it waits, and what it packs into a request: against answers made by hand."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

import resight
from resight.client import bulk_add, transport
from resight.client.transport import EventParser
from resight.errors import CollectionError, InputError, MissingExtra, ServiceBusy, ServiceError, StorageError

URL = "http://resight.test"
Answer = Callable[[httpx.Request], httpx.Response]
PROBLEM = {"error": {"problem": "p", "expected": "e", "actual": "a", "fix": "f"}, "request_id": "r1"}
HEALTH = {
    "status": "ok",
    "version": "9.9",
    "ready": True,
    "faults": {},
    "images": 1,
    "collections": ["a"],
    "quarantined": 0,
    "new_in_9_9": 1,
}


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that a client would have waited."""
    seconds: list[float] = []

    async def wait(pause: float) -> None:
        seconds.append(pause)

    monkeypatch.setattr(time, "sleep", seconds.append)
    monkeypatch.setattr(asyncio, "sleep", wait)
    return seconds


def connect(answers: Iterator[Any], **settings: Any) -> resight.Client:
    """A client that gets these answers, one per request; an exception is raised."""
    client = resight.Client(URL, **settings)
    client._http = httpx.Client(transport=httpx.MockTransport(reply(answers)), **client._connection.settings)
    return client


def reply(answers: Iterator[Any]) -> Answer:
    def answer(request: httpx.Request) -> httpx.Response:
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found(request) if callable(found) else found

    return answer


def refuse(status: int, seconds: str | None = None) -> httpx.Response:
    headers = {} if seconds is None else {"Retry-After": seconds}
    return httpx.Response(status, json=PROBLEM, headers=headers)


def accept(body: Any) -> httpx.Response:
    return httpx.Response(200, json=body)


def test_it_waits_as_long_as_the_service_says(waits: list[float]) -> None:
    client = connect(iter([refuse(429, "7"), refuse(503, "3"), accept(HEALTH)]))
    assert client.health().collections == ("a",)
    assert waits == [7.0, 3.0]


def test_asyncio_waits_the_same(waits: list[float]) -> None:
    async def ask() -> Any:
        async with resight.AsyncClient(URL) as client:
            answers = reply(iter([refuse(429, "7"), accept(HEALTH)]))
            client._http = httpx.AsyncClient(transport=httpx.MockTransport(answers), base_url=URL)
            return await client.health()

    assert asyncio.run(ask()).version == "9.9"
    assert waits == [7.0]


def test_it_gives_up_after_so_many_times(waits: list[float]) -> None:
    with pytest.raises(ServiceBusy) as busy:
        connect(iter([refuse(429)] * 3), retries=2).jobs()
    assert (busy.value.problem, busy.value.expected, busy.value.actual, busy.value.fix) == ("p", "e", "a", "f")
    assert busy.value.__notes__ == ["HTTP 429, request r1"]
    assert len(waits) == 2 and waits[0] < waits[1]


@pytest.mark.parametrize("answer", [refuse(503), refuse(429, "3600"), refuse(500, "1")])
def test_it_asks_once_where_waiting_does_not_help(answer: httpx.Response, waits: list[float]) -> None:
    with pytest.raises(ServiceError):
        connect(iter([answer])).jobs()
    assert waits == []


@pytest.mark.parametrize(
    ("status", "kind"), [(400, InputError), (404, CollectionError), (413, InputError), (507, StorageError)]
)
def test_an_error_has_the_kind_that_the_library_raises(status: int, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        connect(iter([refuse(status)])).jobs()


def test_a_broken_connection_is_tried_again_only_where_that_does_no_harm(waits: list[float]) -> None:
    broken = httpx.RemoteProtocolError("gone")
    assert connect(iter([broken, httpx.ConnectError("no"), accept([])])).jobs() == ()
    with pytest.raises(ServiceError, match="does not answer"):
        connect(iter([broken])).delete("a")
    assert connect(iter([httpx.ConnectError("no"), accept({"removed": 1})])).delete("a") == 1
    with pytest.raises(ServiceError, match="does not answer") as slow:
        connect(iter([httpx.ReadTimeout("slow")]), timeout=3).jobs()
    assert slow.value.expected == "an answer within 3 seconds"
    assert len(waits) == 3


def test_a_key_is_sent_as_a_header_and_never_in_an_address() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return accept([])

    connect(iter([answer]), key="secret", collection="a b").jobs()
    assert seen[0].headers["Authorization"] == "Bearer secret"
    assert "secret" not in str(seen[0].url) and seen[0].url.params["collection"] == "a b"


def test_a_page_that_is_not_ours_is_an_error_that_says_so() -> None:
    for answer in (httpx.Response(200, text="<html>"), httpx.Response(502, text="Bad gateway")):
        with pytest.raises(ServiceError, match="does not answer like resight"):
            connect(iter([answer])).jobs()


def test_a_stream_that_breaks_is_opened_again_and_polled_where_none_is_free(waits: list[float]) -> None:
    job = {
        "id": "j",
        "kind": "add",
        "collection": "a",
        "state": "running",
        "done": 0,
        "total": 1,
        "added": 0,
        "updated": 0,
        "quarantined": 0,
        "skipped": [],
        "error": None,
        "created": 1.0,
        "finished": None,
    }
    done = {**job, "state": "done", "done": 1, "added": 1}
    first = httpx.Response(200, text=f"event: progress\ndata: {json.dumps(job)}\n\n: still here\n\n")
    last = httpx.Response(200, text=f"event: done\ndata: {json.dumps(done)}\n\n")
    client = connect(iter([first, refuse(429), accept(job), httpx.ReadError("cut"), last]), retries=0)
    with pytest.raises(ServiceError, match="ends the stream"):
        list(client.follow("j"))
    client = connect(iter([first, refuse(429), refuse(429), accept(job), last]), retries=1)
    assert [one.done for one in client.follow("j")] == [0, 0, 1]
    assert waits


def test_events_are_read_line_by_line() -> None:
    parser = EventParser()
    lines = ["event: progress", 'data: {"a": 1}', "", ": still here", "", "event: done", 'data: {"a": 2}', ""]
    assert [event for line in lines if (event := parser.feed(line))] == [("progress", {"a": 1}), ("done", {"a": 2})]


def test_requests_are_packed_and_halved_where_the_service_takes_less(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.jpg" for number in range(bulk_add.FILES + 1)]
    for path in files:
        path.write_bytes(b"\xff\xd8\xff")
    packed = list(bulk_add.pack(bulk_add.list_sources([files]).read()))
    assert [len(one) for one in packed] == [bulk_add.FILES, 1]
    sent: list[int] = []
    job = {"id": "j", "kind": "add", "collection": "a", "state": "done", "total": 1, "updated": 0, "quarantined": 0}
    rest = {"skipped": [], "error": None, "created": 1.0, "finished": 2.0}

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return accept({**job, "done": 1, "added": 1, **rest})
        count = request.content.count(b'name="images"')
        sent.append(count)
        return refuse(413) if count > 1 else httpx.Response(202, json={"job": {**job, "done": 0, "added": 0, **rest}})

    report = connect(iter([answer] * 20)).add(files[:3])
    assert (sent, report.added, report.skipped) == ([3, 1, 2, 1, 1], 3, ())


def test_names_of_files_differ_within_a_request() -> None:
    assert bulk_add.choose_names(["a.jpg", "a.jpg", "a-2.jpg", "b"]) == ["a.jpg", "a-2.jpg", "a-2-2.jpg", "b"]


def test_without_httpx_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> Any:
        raise ImportError

    make = resight.Client
    monkeypatch.setattr(transport.importlib, "import_module", fail)
    with pytest.raises(MissingExtra, match=r"\[client\]"):
        make(URL)


def test_connections_are_reused() -> None:
    opened: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            opened.append("")
            super().setup()

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"[]")

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with resight.Client(f"http://127.0.0.1:{server.server_port}") as client:
            assert [client.jobs() for _ in range(5)] == [()] * 5
            assert client.use("other").jobs() == ()
        server.shutdown()
    assert len(opened) == 1
