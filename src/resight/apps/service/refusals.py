"""Errors → answers of one shape: {"error": {problem, expected, actual, fix}, "request_id"} and the right status.

What a client sent wrongly is said in full. What went wrong here is logged, and told in general words without paths.
"""

import logging
import math
from collections.abc import Mapping

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException

from resight.apps.service.plain_json import Json
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


def install(app: FastAPI) -> None:
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
