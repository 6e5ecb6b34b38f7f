"""The service's own OpenAPI description, used to hold requests to it: unknown parameters are refused by name."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from resight.apps.service.refusals import Refusal, answer_error
from resight.apps.service.shapes import Error

ERRORS = {
    400: "what was sent cannot be used",
    401: "a key is needed",
    403: "not allowed",
    404: "there is no such thing",
    405: "the method is not known here",
    408: "the request came too slowly",
    413: "the request is too large",
    415: "another content type is expected",
    422: "a field is unknown, missing or malformed",
    429: "too many at once; see Retry-After",
    503: "not just now; see Retry-After",
}
DOCUMENTED: dict[int | str, dict[str, Any]] = {
    status: {"model": Error, "description": meaning} for status, meaning in ERRORS.items()
}


def check_parameters(request: Request) -> None:
    """A dependency of every route."""
    known = list_parameters(request)
    unknown = sorted(set(request.query_params) - set(known))
    if unknown:
        raise Refusal(
            422,
            "a parameter is not known",
            expected=", ".join(known) or "no parameters",
            actual=", ".join(name[:80] for name in unknown[:20]),
            fix="leave it out, or correct its name",
        )


def install(app: FastAPI) -> None:
    """Let `app` name the fields that it refuses, and those that it knows."""

    async def answer(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return answer_error(_refuse_fields(request, error), request.state.request_id)

    app.add_exception_handler(RequestValidationError, answer)


def list_parameters(request: Request) -> list[str]:
    """Names of the query parameters of a route."""
    return [one["name"] for one in _find_operation(request).get("parameters", []) if one["in"] == "query"]


def list_fields(request: Request) -> list[str]:
    """Names of the fields of a route's body; none where it takes no form and no object."""
    content = _find_operation(request).get("requestBody", {}).get("content", {})
    schemas = _describe(request)["components"]["schemas"]
    for media in content.values():
        name = media["schema"].get("$ref", "").rpartition("/")[2]
        return list(schemas.get(name, media["schema"]).get("properties", ()))
    return []


def takes(media_type: str) -> Any:
    """A dependency for routes with a body: a 415 for any other content type."""

    def check_type(request: Request) -> None:
        given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if given != media_type:
            raise Refusal(
                415,
                "the body has another content type",
                expected=media_type,
                actual=given[:80] or "none",
                fix=f"send it as {media_type}",
            )

    return check_type


def _refuse_fields(request: Request, error: RequestValidationError) -> Refusal:
    faults = [f"{str(fault['loc'][-1])[:80]}: {fault['msg']}" for fault in error.errors()]
    known = [*list_parameters(request), *list_fields(request)]
    return Refusal(
        422,
        "a field is unknown, missing or malformed",
        expected=f"{', '.join(known)}, as /api/openapi.json describes them",
        actual="; ".join(faults[:20]),
        fix="correct the fields that are named",
    )


def _find_operation(request: Request) -> dict[str, Any]:
    path = getattr(request.scope.get("route"), "path", "")
    operation: dict[str, Any] = _describe(request)["paths"].get(path, {}).get(request.method.lower(), {})
    return operation


def _describe(request: Request) -> dict[str, Any]:
    app: FastAPI = request.app
    return app.openapi()  # made once
