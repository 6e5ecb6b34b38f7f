"""The web page: / and /assets/…; and /docs, where Swagger UI shows the API, from files that come with the package.

The service reads all files once, at the start; no request path reaches the disk.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request
from fastapi.responses import Response

from resight.apps.service.error_responses import not_found
from resight.apps.service.state import Service
from resight.files.fingerprint import fingerprint

TYPES: Mapping[str, str] = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
    ".png": "image/png",
    ".json": "application/json",
}


@dataclass(frozen=True)
class Asset:
    data: bytes
    media_type: str
    tag: str


def router(_: Service) -> APIRouter:
    routes = APIRouter(include_in_schema=False)
    assets = dict(read_assets(resources.files("resight.apps") / "web"))
    docs = dict(read_assets(resources.files("resight.apps") / "api_docs"))

    @routes.get("/")
    async def read_page(request: Request) -> Response:
        return _answer(assets.get("index.html"), request)

    @routes.get("/favicon.ico")
    async def read_icon(request: Request) -> Response:
        return _answer(assets.get("icon.svg"), request)

    @routes.get("/assets/{name:path}")
    async def read_asset(name: str, request: Request) -> Response:
        return _answer(assets.get(name), request)

    @routes.get("/docs")
    async def read_docs(request: Request) -> Response:
        return _answer(docs.get("index.html"), request)

    @routes.get("/docs/{name}")
    async def read_docs_file(name: str, request: Request) -> Response:
        return _answer(docs.get(name), request)

    return routes


def read_assets(folder: Traversable, before: str = "") -> Iterator[tuple[str, Asset]]:
    """Relative path → file, for the types in TYPES."""
    for entry in folder.iterdir():
        suffix = "." + entry.name.rpartition(".")[2]
        if entry.is_dir():
            yield from read_assets(entry, f"{before}{entry.name}/")
        elif suffix in TYPES:
            data = entry.read_bytes()
            yield before + entry.name, Asset(data, TYPES[suffix], f'"{fingerprint(data, 32)}"')


def _answer(asset: Asset | None, request: Request) -> Response:
    if asset is None:
        raise not_found("file of the page", request.url.path[:80])
    headers = {"ETag": asset.tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == asset.tag:
        return Response(status_code=304, headers=headers)
    return Response(asset.data, media_type=asset.media_type, headers=headers)
