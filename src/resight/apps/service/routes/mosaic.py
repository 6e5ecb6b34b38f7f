"""/api/mosaic: the reduced map of the globe that `resight serve --map` names. It is read once, at the start."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from resight.apps.service.error_responses import not_found
from resight.apps.service.state import Service
from resight.files.fingerprint import fingerprint


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/api/mosaic", tags=["collections"])
    file = service.settings.mosaic
    data = file.read_bytes() if file else b""
    headers = {"ETag": f'"{fingerprint(data, 32)}"', "Cache-Control": "private, no-cache"}

    @routes.get("", response_class=Response, responses={200: {"content": {"image/webp": {}}}})
    async def read_mosaic(request: Request) -> Response:
        """A picture of the globe; /api/collections/craters has its edges."""
        if not data:
            raise not_found("map", "mosaic", "a service started with --map")
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(data, media_type="image/webp", headers=headers)

    return routes
