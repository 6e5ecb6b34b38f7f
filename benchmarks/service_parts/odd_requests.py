"""Malformed requests, over plain sockets: broken HTTP, odd headers, bodies that are not what they say.

Each of them must be answered with a status below 500 or be closed, within ten seconds; a real image is searched
afterwards. Requests that promise more bytes than they send are cut off by this side, as a client does that leaves.
"""

import random
import socket
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import httpx
import numpy as np

from service_parts.malformed import FORMATS, draw
from service_parts.server import Server

HANG = 10.0  # seconds
PATIENCE = 15.0
PATHS = (
    *("/api/search", "/api/images", "/api/image", "/api/jobs", "/api/health", "/api/quarantine", "/api/session"),
    *("/api/quarantine/retry", "/api/search/stages", "/api/why", "/api/images/delete", "/metrics", "/", "/nothing"),
)
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "get", "BREW", "POST" * 300)
TEXTS = (
    "",
    "null",
    "[]",
    "{",
    '{"ids": ["\\ud800"]}',
    '{"a":' * 3000,
    "1e400",
    '{"k": 1e999}',
    "\x00",
    "=1+1",
    "\udcff",
)
JUNK = ("..", "%2e%2e/%2e%2e/etc/passwd", "%00", "%ff%fe", "a" * 3000, "?k=-1", "?k=1e9", "?id=%ed%a0%80", "//", "\\")


def send_odd_requests(server: Server, count: int, seed: int = 0) -> bool:
    chance = random.Random(seed)
    told: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    slowest = 0.0
    with suppress(KeyboardInterrupt):
        for number in range(count):
            kind, make = KINDS[number % len(KINDS)]
            data = make(chance)
            began = time.monotonic()
            status = exchange(server.port, data)
            seconds = time.monotonic() - began
            slowest = max(slowest, seconds)
            told[kind, status] += 1
            if status.startswith("5") or seconds > HANG:
                wrong.append(f"{kind}: {status} after {seconds:.1f} s: {data[:160]!r}")
    with httpx.Client(base_url=server.address, timeout=60) as client:
        image = draw(FORMATS["png"], np.random.default_rng(seed))
        after = client.post("/api/search", files={"image": ("whole.png", image)}).status_code
    print(f"{told.total():,} requests")
    for (kind, status), times in sorted(told.items()):
        print(f"{kind:<10} {status:<10} {times:>7,}")
    print(f"slowest answer {slowest:.2f} s (bar {HANG:.0f} s); a real image afterwards: {after}")
    for line in wrong[:10]:
        print("wrong:", line)
    passed = not wrong and after == 200 and server.is_running
    print("met" if passed else f"MISSED: {len(wrong)} wrong answers")
    return passed


def exchange(port: int, data: bytes) -> str:
    """The status of the answer, or how the connection ended. The request is complete as far as it will come."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            first = connection.recv(64)
    except TimeoutError:
        return "silence"
    except OSError:
        return "reset"
    return first[9:12].decode("latin-1") if first.startswith(b"HTTP/1.") else "closed"


def _write(method: str, path: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    named = {"Host": "127.0.0.1", "Connection": "close", **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("utf-8", "surrogateescape") + body


def _noise(chance: random.Random) -> bytes:
    return chance.randbytes(chance.randrange(1, 3000))


def _line(chance: random.Random) -> bytes:
    path = chance.choice(PATHS) + chance.choice(("", *JUNK))
    return _write(chance.choice(METHODS), path, {})


def _headers(chance: random.Random) -> bytes:
    odd = {
        "Content-Length": ("-1", "1e9", "99999999999999999999", "5, 5", "x", ""),
        "Transfer-Encoding": ("chunked", "chunked, chunked", "gzip", "identity"),
        "Host": ("", "evil.example", "127.0.0.1:99999", "[::", "a b"),
        "Authorization": ("Bearer", "Bearer \xff", "Basic !!!", "Bearer " + "k" * 5000),
        "Cookie": ("resight_session=.", "resight_session=" + "A" * 4000, "=;=;="),
        "Content-Type": ("multipart/form-data", "multipart/form-data; boundary=", "text/plain; charset=utf-7", "/"),
        "Range": ("bytes=9-1", "bytes=-", "bytes=0-" + "9" * 40),
        "X-Forwarded-For": ("not an address", "1.2.3.4, " * 300, "::ffff:1.2.3.4"),
        "Accept-Language": ("q=9" * 500,),
        "Origin": ("null", "http://[", "https://127.0.0.1"),
    }
    chosen = chance.sample(sorted(odd), chance.randrange(1, 4))
    return _write(
        chance.choice(("GET", "POST", "DELETE")),
        chance.choice(PATHS),
        {name: chance.choice(odd[name]) for name in chosen},
    )


def _json(chance: random.Random) -> bytes:
    body = chance.choice(TEXTS).encode("utf-8", "surrogateescape")
    length = len(body) + chance.choice((0, 0, 0, 7, -1))
    headers = {"Content-Type": "application/json", "Content-Length": str(max(length, 0))}
    return _write(chance.choice(("POST", "PUT", "DELETE")), chance.choice(PATHS), headers, body)


def _form(chance: random.Random) -> bytes:
    name = chance.choice(("image", "images", "k", "box", "filters", "ids", "attributes", "collection", ""))
    file = chance.choice(('; filename="x.png"', '; filename="../../x"', '; filename="\udcff"', "", '; filename="a\\"b'))
    value = chance.choice((*TEXTS, "0,0,1", "nan,nan,inf,1", "-5", "9" * 400)).encode("utf-8", "surrogateescape")
    part = f'--B\r\nContent-Disposition: form-data; name="{name}"{file}\r\n'.encode("utf-8", "surrogateescape")
    body = part * chance.randrange(1, 4) + b"\r\n" + value + chance.choice((b"\r\n--B--\r\n", b"", b"\r\n--B\r\n"))
    headers = {"Content-Type": "multipart/form-data; boundary=B", "Content-Length": str(len(body))}
    return _write(chance.choice(("POST", "PUT")), chance.choice(PATHS), headers, body)


def _chunks(chance: random.Random) -> bytes:
    chunks = chance.choice(
        (b"5\r\nhello\r\n0\r\n\r\n", b"fffffffff\r\n", b"-1\r\n", b"zz\r\n\r\n", b"5\r\nhel", b"5;" + b"x" * 900)
    )
    return _write(
        "POST", chance.choice(PATHS), {"Transfer-Encoding": "chunked", "Content-Type": "application/json"}, chunks
    )


def _pipeline(chance: random.Random) -> bytes:
    first = _write("GET", "/api/health", {"Connection": "keep-alive"})
    return first * chance.randrange(1, 20) + _line(chance)


KINDS: tuple[tuple[str, Callable[[random.Random], bytes]], ...] = (
    ("noise", _noise),
    ("line", _line),
    ("headers", _headers),
    ("json", _json),
    ("form", _form),
    ("chunks", _chunks),
    ("pipeline", _pipeline),
)
