"""Errors and invalid requests → JSON responses of one shape: {"error": {problem, expected, actual, fix}, "request_id"}.

A client's mistake is reported in full, by the names in the service's own OpenAPI description. A fault of the service is
logged; the client gets a general sentence without paths.
"""

import logging
import math
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from resight.apps.service.schemas import Error
from resight.apps.service.serializers import AsciiJSONResponse
from resight.errors import (
    CollectionBusy,
    CollectionError,
    InputError,
    MissingExtra,
    ResightError,
    StorageError,
)

log = logging.getLogger("resight.service")
RETRY = 2  # seconds, where no better estimate is known
ASK_ADMINISTRATOR = "ask the administrator of this service"


class ApiError(ResightError):
    """A request that is answered with this HTTP status."""

    def __init__(
        self,
        status: int,
        problem: str,
        *,
        expected: str = "",
        actual: str = "",
        fix: str = "",
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(problem, expected=expected, actual=actual, fix=fix)
        self.status = status
        retry = {} if retry_after is None else {"Retry-After": str(max(1, math.ceil(retry_after)))}
        self.headers = {**(headers or {}), **retry}


class JournalError(StorageError):
    """The job database cannot be used. Its `problem` names no path, so that clients may read it."""


def not_found(kind: str, actual: str, fix: str = "check the name") -> ApiError:
    """A 404."""
    return ApiError(404, f"there is no such {kind}", expected=f"an existing {kind}", actual=actual, fix=fix)


ERRORS = {
    400: "the input cannot be used",
    401: "an access key is required",
    403: "not allowed",
    404: "not found",
    405: "the method is not supported here",
    408: "the request arrived too slowly",
    413: "the request is too large",
    415: "unsupported content type",
    422: "a field is unknown, missing or malformed",
    429: "too many requests; see Retry-After",
    503: "temporarily unavailable; see Retry-After",
    507: "the disk of the service is full or not writable",
}
DOCUMENTED: dict[int | str, dict[str, Any]] = {
    status: {"model": Error, "description": meaning} for status, meaning in ERRORS.items()
}
SERVER_FAULTS: Mapping[type[Exception], ApiError] = {
    CollectionBusy: ApiError(503, "another process is writing to the collection", fix="try again", retry_after=RETRY),
    StorageError: ApiError(507, "the disk of the service is full or not writable", fix=ASK_ADMINISTRATOR),
    MissingExtra: ApiError(503, "the service lacks a package or file that this needs", fix=ASK_ADMINISTRATOR),
    CollectionError: ApiError(503, "the collection is temporarily unavailable", fix="try again", retry_after=RETRY),
}


def install_error_handlers(app: FastAPI) -> None:
    async def answer(request: Request, error: Exception) -> AsciiJSONResponse:
        return respond_to_error(error, getattr(request.state, "request_id", ""))

    async def answer_validation(request: Request, error: Exception) -> AsciiJSONResponse:
        assert isinstance(error, RequestValidationError)
        return respond_to_error(_describe_fields(request, error), request.state.request_id)

    for kind in (ResightError, HTTPException):
        app.add_exception_handler(kind, answer)
    app.add_exception_handler(RequestValidationError, answer_validation)


def respond_to_error(error: Exception, request_id: str) -> AsciiJSONResponse:
    """The response to any exception."""
    found = to_api_error(error)
    content = {"error": serialize_error(found), "request_id": request_id}
    return AsciiJSONResponse(content, found.status, headers=dict(found.headers))


def to_api_error(error: Exception) -> ApiError:
    """The part of an exception that a client may see."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, HTTPException):
        return _convert_http_exception(error)
    if isinstance(error, InputError):
        return ApiError(400, error.problem, expected=error.expected, actual=error.actual, fix=error.fix)
    if isinstance(error, JournalError):
        log.warning("%s", error)
        return ApiError(507, error.problem, fix=ASK_ADMINISTRATOR)
    for kind, known in SERVER_FAULTS.items():
        if isinstance(error, kind):
            log.warning("%s", error)
            return known
    log.error("a request failed", exc_info=error)
    return ApiError(500, "internal error", fix="send the request id to the administrator of this service")


def serialize_error(error: ResightError) -> dict[str, str]:
    return {"problem": error.problem, "expected": error.expected, "actual": error.actual, "fix": error.fix}


def reject_unknown_parameters(request: Request) -> None:
    """A dependency of every route: a 422 for query parameters that the OpenAPI description does not name."""
    known = list_parameters(request)
    unknown = sorted(set(request.query_params) - set(known))
    if unknown:
        raise ApiError(
            422,
            "unknown parameter",
            expected=", ".join(known) or "no parameters",
            actual=", ".join(name[:80] for name in unknown[:20]),
            fix="remove it, or correct its name",
        )


def require_content_type(media_type: str) -> Callable[[Request], None]:
    """A dependency for routes with a body: a 415 for any other content type."""

    def check_type(request: Request) -> None:
        given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if given != media_type:
            raise ApiError(
                415,
                "unsupported content type",
                expected=media_type,
                actual=given[:80] or "none",
                fix=f"send the body as {media_type}",
            )

    return check_type


def list_parameters(request: Request) -> list[str]:
    """Names of the query parameters of a route."""
    return [one["name"] for one in _find_operation(request).get("parameters", []) if one["in"] == "query"]


def list_fields(request: Request) -> list[str]:
    """Names of the fields of a route's body; empty where it takes neither a form nor an object."""
    content = _find_operation(request).get("requestBody", {}).get("content", {})
    schemas = _read_openapi(request)["components"]["schemas"]
    for media in content.values():
        name = media["schema"].get("$ref", "").rpartition("/")[2]
        return list(schemas.get(name, media["schema"]).get("properties", ()))
    return []


def _convert_http_exception(error: HTTPException) -> ApiError:
    known = {
        404: ("there is nothing at this address", "see /api/openapi.json for the addresses"),
        405: ("this address does not support that method", "see the Allow header"),
    }
    problem, fix = known.get(error.status_code, (str(error.detail), "see /api/openapi.json"))
    return ApiError(error.status_code, problem, fix=fix, headers=error.headers)


def _describe_fields(request: Request, error: RequestValidationError) -> ApiError:
    faults = [f"{str(fault['loc'][-1])[:80]}: {fault['msg']}" for fault in error.errors()]
    known = [*list_parameters(request), *list_fields(request)]
    return ApiError(
        422,
        "a field is unknown, missing or malformed",
        expected=f"{', '.join(known)}, as /api/openapi.json describes them",
        actual="; ".join(faults[:20]),
        fix="correct the fields named above",
    )


def _find_operation(request: Request) -> dict[str, Any]:
    path = getattr(request.scope.get("route"), "path", "")
    operation: dict[str, Any] = _read_openapi(request)["paths"].get(path, {}).get(request.method.lower(), {})
    return operation


def _read_openapi(request: Request) -> dict[str, Any]:
    app: FastAPI = request.app
    return app.openapi()  # FastAPI builds it once
