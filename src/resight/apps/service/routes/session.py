"""The page's sign-in: /api/session exchanges a key for a cookie that scripts cannot read."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import Field

from resight.apps.service import auth, schemas
from resight.apps.service.api_keys import Caller
from resight.apps.service.error_responses import ASK_ADMINISTRATOR, ApiError, require_content_type
from resight.apps.service.request_bodies import Body
from resight.apps.service.serializers import AsciiJSONResponse, JsonObject
from resight.apps.service.state import Service


class SignIn(Body):
    key: Annotated[str, Field(min_length=1, max_length=500)]


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/api/session", tags=["session"])
    settings = service.settings

    def serialize_state(caller: Caller | None) -> JsonObject:
        return {
            "needs_key": bool(settings.keys),
            "signed_in": caller is not None,
            "may_write": caller is not None and caller.may_write,
        }

    @routes.get("", response_model=schemas.SessionState)
    async def read_session(request: Request) -> AsciiJSONResponse:
        return AsciiJSONResponse(serialize_state(request.state.caller))

    @routes.post(
        "", response_model=schemas.SessionState, dependencies=[Depends(require_content_type("application/json"))]
    )
    async def sign_in(request: Request, body: SignIn) -> AsciiJSONResponse:
        """Sets a cookie that stands for the key for twelve hours."""
        if not settings.keys:
            return AsciiJSONResponse(serialize_state(request.state.caller))
        address = auth.read_address(request)
        key = service.key_guard.find(body.key, address)
        if key is None:
            raise ApiError(401, "Wrong key", fix=ASK_ADMINISTRATOR)
        response = AsciiJSONResponse(serialize_state(auth.make_caller(key, settings, address)))
        response.set_cookie(
            auth.COOKIE,
            auth.sign_session(key, settings.secret),
            max_age=auth.LIFETIME,
            httponly=True,
            samesite="strict",
            secure="https" in (request.url.scheme, request.headers.get("x-forwarded-proto", "")),  # set by a proxy
        )
        return response

    @routes.delete("", response_model=schemas.SessionState)
    async def sign_out() -> AsciiJSONResponse:
        response = AsciiJSONResponse(
            serialize_state(None if settings.keys else Caller(may_write=not settings.read_only))
        )
        response.delete_cookie(auth.COOKIE, httponly=True, samesite="strict")
        return response

    return routes
