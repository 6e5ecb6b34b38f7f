"""A web server on this machine that behaves well or badly, as each file says: ranges, cuts, stalls, wrong answers."""

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Served:
    """One file, and how it is served."""

    content: bytes
    ranges: bool = True
    etag: str = '"one"'
    length: bool = True  # announce Content-Length
    extra_length: int = 0  # announce so many bytes more than there are
    kind: str = "application/octet-stream"
    statuses: list[int] = field(default_factory=list)  # answers of the first requests, instead of the file
    headers: Mapping[str, str] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)  # bytes after which the first connections break
    stall: float = 0.0  # seconds of silence after the first half, once
    shift: int = 0  # begin a range so many bytes too late
    redirect: str = ""
    head: bool = True  # answer HEAD


@dataclass
class Server:
    url: str
    files: dict[str, Served]
    requests: list[tuple[str, str, str]] = field(default_factory=list)  # method, path, Range

    def ranges(self, path: str) -> list[str]:
        return [asked for method, name, asked in self.requests if (method, name) == ("GET", path)]


@contextlib.contextmanager
def serve_files(files: dict[str, Served]) -> Iterator[Server]:
    """Serve `files` (path → file) until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    served = Server(f"http://127.0.0.1:{server.server_address[1]}", files)
    server.served = served  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Any

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        served: Server = self.server.served
        asked = self.headers.get("Range", "")
        served.requests.append((self.command, self.path, asked))
        file = served.files.get(self.path)
        if file is None or (not body and not file.head):
            return self._send(404, b"no such file", {}, body)
        if file.redirect:
            return self._send(302, b"", {"Location": file.redirect}, body)
        if body and file.statuses and (status := file.statuses.pop(0)) != 200:
            return self._send(status, b"not now", dict(file.headers), body)
        content, status, headers = file.content, 200, {"ETag": file.etag, "Content-Type": file.kind, **file.headers}
        headers = {name: value for name, value in headers.items() if value}
        same = self.headers.get("If-Range", file.etag) == file.etag
        if asked and file.ranges and same:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                return self._send(416, b"", {"Content-Range": f"bytes */{len(content)}"}, body)
            start += file.shift
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content) + file.extra_length}"
            content, status = content[start:], 206
        return self._send(status, content, headers, body, file)

    def _send(
        self, status: int, content: bytes, headers: Mapping[str, str], body: bool, file: Served | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if file is None or file.length:
            self.send_header("Content-Length", str(len(content) + (file.extra_length if file else 0)))
        else:
            self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = self.close_connection or file is None or not file.length or bool(file.extra_length)
        if not body:
            return
        with contextlib.suppress(OSError):  # the client may have gone
            if file and file.cuts:
                self.wfile.write(content[: file.cuts.pop(0)])
                self.close_connection = True
                return
            if file and file.stall:
                self.wfile.write(content[: len(content) // 2])
                self.wfile.flush()
                pause, file.stall = file.stall, 0.0
                time.sleep(pause)
                self.close_connection = True
                return
            self.wfile.write(content)
