"""Silent and slow clients: the table by itself, and a real server with short deadlines."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import uvicorn

from resight.apps.service import connection_limits
from resight.apps.service.client_address import check_networks, group_address
from resight.apps.service.connection_limits import ConnectionLimits, ConnectionTable, LimitedProtocol
from resight.errors import InputError

WAIT = 30.0


class Line:
    def __init__(self) -> None:
        self.dropped = False

    def drop(self) -> None:
        self.dropped = True


def admit(table: ConnectionTable, address: str, count: int = 1) -> list[Line]:
    lines = [Line() for _ in range(count)]
    assert [table.admit(line, address) for line in lines] == [True] * count
    return lines


def test_a_new_connection_takes_the_place_of_the_oldest_silent_one_of_its_address() -> None:
    table = ConnectionTable(ConnectionLimits(per_address=2))
    (other,) = admit(table, "192.0.2.9")
    first, second, _ = admit(table, "192.0.2.1", 3)
    assert (first.dropped, second.dropped, other.dropped, len(table)) == (True, False, False, 3)


def test_connections_that_work_are_not_dropped_and_one_too_many_is_refused() -> None:
    table = ConnectionTable(ConnectionLimits(per_address=2))
    lines = admit(table, "192.0.2.1", 2)
    for line in lines:
        table.mark_busy(line)
    assert not table.admit(Line(), "192.0.2.1")
    table.mark_silent(lines[0])
    assert table.admit(Line(), "192.0.2.1") and lines[0].dropped and not lines[1].dropped
    table.forget(lines[1])
    assert len(table) == 1


def test_when_all_places_are_taken_the_address_with_the_most_silent_ones_loses_one() -> None:
    table = ConnectionTable(ConnectionLimits(total=4))
    crowd, (single,) = admit(table, "192.0.2.1", 3), admit(table, "192.0.2.2")
    admit(table, "192.0.2.3")
    assert [line.dropped for line in crowd] == [True, False, False] and not single.dropped


def test_a_trusted_proxy_and_this_machine_have_limits_of_their_own() -> None:
    limits = ConnectionLimits(total=9, per_address=2, per_loopback=3, trusted_proxies=("10.0.0.0/8",))
    assert [limits.limit(one) for one in ("192.0.2.1", "127.0.0.1", "::1", "10.1.2.3", "")] == [2, 3, 3, 9, 2]


def test_addresses_of_one_ipv6_network_are_one_client() -> None:
    assert group_address("2001:db8::1") == group_address("2001:db8::ffff") != group_address("2001:db8:0:1::1")
    assert group_address("::ffff:192.0.2.1") == "192.0.2.1" and group_address("") == ""


def test_a_network_that_is_none_is_refused() -> None:
    check_networks(["10.0.0.0/8", "::1"])
    with pytest.raises(InputError, match="trusted-proxy"):
        check_networks(["proxy.local"])


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Echoes the length of the body."""
    assert scope["type"] == "http"
    length, more = 0, True
    while more:
        message = await receive()
        length, more = length + len(message.get("body", b"")), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    body = b"x" * 50_000_000 if scope["path"] == "/large" else str(length).encode()
    await send({"type": "http.response.body", "body": body})


@contextlib.contextmanager
def serving(limits: ConnectionLimits) -> Iterator[tuple[str, int]]:
    before = LimitedProtocol.table
    connection_limits.configure(limits)
    config = uvicorn.Config(
        app, port=0, http=LimitedProtocol, lifespan="off", log_level="error", timeout_keep_alive=1, access_log=False
    )
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    try:
        yield listener.getsockname()
    finally:
        server.should_exit = True
        thread.join(WAIT)
        LimitedProtocol.table = before


def read_to_end(client: socket.socket) -> bytes:
    client.settimeout(WAIT)
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while data := client.recv(65536):
            received += data
    return received


def test_a_header_that_never_ends_is_cut_off_however_often_a_byte_comes() -> None:
    with serving(ConnectionLimits(header=0.5)) as address, socket.create_connection(address) as slow:
        begin = time.monotonic()
        slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        with contextlib.suppress(OSError):
            for _ in range(int(WAIT / 0.05)):
                slow.sendall(b"a")
                time.sleep(0.05)
        assert time.monotonic() - begin < WAIT / 2
        assert read_to_end(slow).startswith((b"HTTP/1.1 408", b""))


def test_a_silent_connection_is_closed_and_so_is_one_that_falls_silent_in_its_second_header() -> None:
    with serving(ConnectionLimits(header=0.3)) as address:
        with socket.create_connection(address) as silent:
            assert read_to_end(silent).startswith(b"HTTP/1.1 408")
        with socket.create_connection(address) as second:
            second.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HT")
            answers = read_to_end(second)
            assert answers.startswith(b"HTTP/1.1 200") and answers.count(b"HTTP/1.1") <= 2


def test_a_response_that_nobody_reads_and_a_request_without_end_are_given_up() -> None:
    with serving(ConnectionLimits(stall=0.3, request=0.6)) as address:
        with socket.create_connection(address) as reader:
            reader.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            time.sleep(1.0)
            assert len(read_to_end(reader)) < 50_000_000
        with socket.create_connection(address) as sender:
            sender.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n1")
            assert read_to_end(sender) == b""


def test_two_thousand_silent_connections_leave_others_served() -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 6000
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip("too few file descriptors are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    silent: list[socket.socket] = []
    try:
        with serving(ConnectionLimits(header=WAIT)) as address, httpx.Client(timeout=WAIT) as client:
            url = f"http://{address[0]}:{address[1]}/"
            for number in range(2000):
                silent.append(socket.create_connection(address, WAIT))
                if number % 200 == 199:
                    assert httpx.get(url, timeout=WAIT).text == "0"
                    assert client.post(url, content=b"abc").text == "3"
            assert len(LimitedProtocol.table) <= 512
    finally:
        for one in silent:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
