"""Errors → answers of one shape: {"error": {problem, expected, actual, fix}, "request_id"} and the right status.

What a client sent wrongly is said in full. What went wrong here is logged, and told in general words without paths.

The service's own OpenAPI description, used to hold requests to it: unknown parameters are refused by name.
"""

import logging
import math
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from resight.apps.service.schemas import Error
from resight.apps.service.serializers import Json
from resight.errors import (
    CollectionBusy,
    CollectionError,
    InputError,
    MissingExtra,
    ResightError,
    StorageError,
)

log = logging.getLogger("resight.service")
RETRY = 2  # seconds, where nothing better is known


class Refusal(ResightError):
    """A request that is answered with this status."""

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
        waiting = {} if retry_after is None else {"Retry-After": str(max(1, math.ceil(retry_after)))}
        self.headers = {**(headers or {}), **waiting}


def answer_error(error: Exception, request_id: str) -> Json:
    """The response to any error."""
    refusal = to_refusal(error)
    return Json({"error": describe(refusal), "request_id": request_id}, refusal.status, headers=dict(refusal.headers))


def describe(error: ResightError) -> dict[str, str]:
    return {"problem": error.problem, "expected": error.expected, "actual": error.actual, "fix": error.fix}


def to_refusal(error: Exception) -> Refusal:
    """What a client may know of an error."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, HTTPException):
        return _refuse_request(error)
    if isinstance(error, InputError):
        return Refusal(400, error.problem, expected=error.expected, actual=error.actual, fix=error.fix)
    for kind, refusal in TOLD.items():
        if isinstance(error, kind):
            log.warning("%s", error)
            return refusal
    log.error("a request failed", exc_info=error)
    return Refusal(500, "something went wrong here", fix="tell whoever runs this service the request id")


TOLD: Mapping[type[Exception], Refusal] = {
    CollectionBusy: Refusal(503, "another process is writing to the collection", fix="try again", retry_after=RETRY),
    StorageError: Refusal(507, "the disk of the service is full or refuses", fix="tell whoever runs this service"),
    MissingExtra: Refusal(503, "the service lacks something that this needs", fix="tell whoever runs this service"),
    CollectionError: Refusal(503, "the collection cannot be used just now", fix="try again", retry_after=RETRY),
}


def install_refusals(app: FastAPI) -> None:
    """Let `app` answer its errors so."""

    async def answer(request: Request, error: Exception) -> Json:
        return answer_error(error, getattr(request.state, "request_id", ""))

    for kind in (ResightError, HTTPException):
        app.add_exception_handler(kind, answer)


def refuse_unknown(kind: str, actual: str, fix: str = "check the name") -> Refusal:
    """A 404."""
    return Refusal(404, f"there is no such {kind}", expected="one that is here", actual=actual, fix=fix)


def _refuse_request(error: HTTPException) -> Refusal:
    said = {
        404: ("there is nothing at this address", "see /api/openapi.json for what there is"),
        405: ("this address does not take that method", "see the Allow header"),
    }
    problem, fix = said.get(error.status_code, (str(error.detail), "see /api/openapi.json"))
    return Refusal(error.status_code, problem, fix=fix, headers=error.headers)


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
