"""Evaluation reports in a folder: /api/reports lists them, /reports/{name} returns one, isolated from the page."""

import html
import re
from collections.abc import Mapping
from pathlib import Path

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse

from resight.apps.service import schemas
from resight.apps.service.auth import require_full_scope
from resight.apps.service.error_responses import not_found
from resight.apps.service.serializers import AsciiJSONResponse, JsonObject
from resight.apps.service.state import Service

TITLE = re.compile(rb"<title>(.*?)</title>", re.IGNORECASE | re.DOTALL)
HEAD = 16_384  # bytes in which to look for a title
MAX_REPORTS = 1000
# A report's scripts run without an origin: they can neither call this service nor read its cookies.
POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:; frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)


def router(service: Service) -> APIRouter:
    routes = APIRouter(tags=["reports"], dependencies=[Depends(require_full_scope)])

    @routes.get("/api/reports", response_model=list[schemas.Report])
    async def list_reports() -> AsciiJSONResponse:
        """The newest first."""
        return AsciiJSONResponse(await run_sync(lambda: _serialize_reports(service.settings.reports)))

    @routes.get("/reports/{name}", response_class=HTMLResponse)
    async def read_report(name: str) -> HTMLResponse:
        files = await run_sync(lambda: _list_files(service.settings.reports))
        if name not in files:
            raise not_found("report", name[:80])
        page = await run_sync(files[name].read_bytes)
        return HTMLResponse(page, headers={"Content-Security-Policy": POLICY})

    return routes


def _serialize_reports(folder: Path | None) -> list[JsonObject]:
    reports: list[JsonObject] = [
        {"name": name, "title": _read_title(path) or name, "modified": path.stat().st_mtime}
        for name, path in _list_files(folder).items()
    ]
    return sorted(reports, key=lambda report: (-report["modified"], report["name"]))


def _list_files(folder: Path | None) -> Mapping[str, Path]:
    """Name → page, without links that lead out of the folder."""
    if folder is None:
        return {}
    root = folder.resolve()
    found = sorted(path for path in root.glob("*.html") if path.is_file() and path.resolve().parent == root)
    return {path.name: path for path in found[:MAX_REPORTS]}


def _read_title(path: Path) -> str:
    with path.open("rb") as file:
        found = TITLE.search(file.read(HEAD))
    return html.unescape(found[1].decode("utf-8", "replace")).strip()[:200] if found else ""
