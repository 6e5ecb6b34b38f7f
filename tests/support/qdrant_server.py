"""Something that speaks Qdrant's HTTP: the requests of the client, answered by its own local mode, in a thread.

It shows that what is sent can be read as the models of the API and that answers come back whole; not what a real server
makes of graphs, codes and indexes.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from qdrant_client import QdrantClient, models


@contextmanager
def serve_qdrant(key: str = "") -> Iterator[tuple[str, list[str]]]:
    """The address, and the fields that an index was asked for."""
    handler = type("Handler", (_Handler,), {"key": key, "client": QdrantClient(":memory:"), "indexed": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", handler.indexed  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    key: str
    client: QdrantClient
    indexed: list[str]

    def do_GET(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *values: Any) -> None:
        pass

    def _answer(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or "{}")
        if self.key and self.headers.get("api-key") != self.key:
            return self._send(403, {"status": {"error": "forbidden"}})
        path = self.path.partition("?")[0]
        found = re.fullmatch(r"/collections(?:/([^/]+)(/.*)?)?", path)
        if found is None:
            return self._send(404, {"status": {"error": "not found"}})
        result = self._carry_out(f"{self.command} {found[2] or ''}".strip(), found[1] or "", body)
        return self._send(200, {"result": result, "status": "ok", "time": 0.0})

    def _carry_out(self, what: str, name: str, body: dict[str, Any]) -> Any:
        client = self.client
        match what:
            case "GET" if not name:
                return client.get_collections()
            case "GET":
                return client.get_collection(name)
            case "GET /exists":
                return {"exists": client.collection_exists(name)}
            case "PUT":
                return client.create_collection(name, models.CreateCollection(**body).vectors)
            case "PUT /index":
                self.indexed.append(models.CreateFieldIndex(**body).field_name)
                return _done()
            case "PUT /points":
                return client.upsert(name, models.PointsList(**body).points)
            case "POST /points/delete":
                return client.delete(name, models.PointIdsList(**body))
            case "POST /points":
                wanted = models.PointRequest(**body)
                return client.retrieve(name, wanted.ids, wanted.with_payload, wanted.with_vector or False)
            case "POST /points/count":
                return client.count(name)
            case "POST /points/scroll":
                page, offset = client.scroll(name, **models.ScrollRequest(**body).model_dump(include=SCROLL))
                return {"points": page, "next_page_offset": offset}
            case "POST /points/query":
                asked = models.QueryRequest(**body)
                return client.query_points(
                    name,
                    query=asked.query,
                    using=asked.using,
                    prefetch=asked.prefetch,
                    query_filter=asked.filter,
                    limit=asked.limit or 10,
                    with_payload=asked.with_payload or False,
                )
        raise AssertionError(f"nobody asks for {what}")

    def _send(self, status: int, content: Any) -> None:
        raw = json.dumps(content, default=lambda value: value.model_dump(mode="json")).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


SCROLL = {"limit", "offset", "with_payload"}


def _done() -> models.UpdateResult:
    return models.UpdateResult(operation_id=0, status=models.UpdateStatus.COMPLETED)
