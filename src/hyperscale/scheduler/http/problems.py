"""Every refusal as `application/problem+json` (RFC 9457), with the path of each bad field.

`error`, `code` and `details` are the older names of the same facts; both are sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import Match

from hyperscale.errors import BadInput, HyperscaleError
from hyperscale.runtime.logs import logger
from hyperscale.scheduler.errors import (
    AlreadyExists,
    DedupConflict,
    IllegalTransition,
    NotFound,
    SchedulerError,
    StaleLeader,
    StaleSession,
    StoreFull,
    StoreUnavailable,
    VersionConflict,
)
from hyperscale.scheduler.http.requests import ID_PATTERN, LABEL_PATTERN
from hyperscale.scheduler.schedules.cron import CronError

PATTERNS: Final = {
    LABEL_PATTERN: "takes 1 to 63 letters, digits or ._:/- and a letter or digit first",
    ID_PATTERN: "takes 1 to 63 letters, digits or ._:- and a letter or digit first",
}
MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = 2

_log = logger("scheduler.api")


class FieldProblem(BaseModel):
    path: str
    """As JSON Pointer into the request: /body/job/priority."""
    message: str
    position: int | None = None
    suggestion: str | None = None


class Problem(BaseModel):
    type: str
    title: str
    status: int
    detail: str
    hint: str | None = None
    error: str
    code: str
    details: list[FieldProblem]


_COMPONENTS: Final = "#/components/schemas/{model}"

ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    family: {
        "description": text,
        "content": {MEDIA_TYPE: {"schema": {"$ref": _COMPONENTS.format(model="Problem")}}},
    }
    for family, text in (("4XX", "The request was refused."), ("5XX", "Nobody can answer now."))
}

_STATUS: Final[tuple[tuple[type[HyperscaleError], HTTPStatus, str], ...]] = (
    (NotFound, HTTPStatus.NOT_FOUND, "not-found"),
    (AlreadyExists, HTTPStatus.CONFLICT, "already-exists"),
    (DedupConflict, HTTPStatus.CONFLICT, "idempotency-conflict"),
    (VersionConflict, HTTPStatus.CONFLICT, "version-conflict"),
    (IllegalTransition, HTTPStatus.CONFLICT, "illegal-transition"),
    (StaleSession, HTTPStatus.CONFLICT, "stale-session"),
    (StaleLeader, HTTPStatus.SERVICE_UNAVAILABLE, "stale-leader"),
    (StoreFull, HTTPStatus.SERVICE_UNAVAILABLE, "store-full"),
    (StoreUnavailable, HTTPStatus.SERVICE_UNAVAILABLE, "store-unavailable"),
    (CronError, HTTPStatus.BAD_REQUEST, "invalid-cron"),
    (BadInput, HTTPStatus.BAD_REQUEST, "invalid"),
    (SchedulerError, HTTPStatus.CONFLICT, "refused"),
    (HyperscaleError, HTTPStatus.INTERNAL_SERVER_ERROR, "failed"),
)


def install(app: FastAPI) -> None:
    app.add_exception_handler(HyperscaleError, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _broken)


def describe(document: dict[str, Any]) -> None:
    """Add the shape of a problem; given as a model, FastAPI would call it application/json."""
    shape = Problem.model_json_schema(ref_template=_COMPONENTS)
    shapes = document.setdefault("components", {}).setdefault("schemas", {})
    shapes |= shape.pop("$defs") | {"Problem": shape}


def answer(
    status: int,
    code: str,
    detail: str,
    *,
    hint: str = "",
    details: Sequence[FieldProblem] = (),
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    problem = Problem(
        type=f"urn:hyperscale:problem:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        hint=hint or None,
        error=detail,
        code=code,
        details=list(details),
    )
    content = problem.model_dump(exclude_none=True)
    return JSONResponse(content, status, headers, media_type=MEDIA_TYPE)


def unknown_caller(authorization: str | None) -> HTTPException:
    said = "nobody here has this token" if authorization else "this needs a token"
    return HTTPException(401, said, headers={"WWW-Authenticate": "Bearer"})


def pointer(location: Sequence[str | int]) -> str:
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in location)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HyperscaleError)
    status, code = next((s, c) for kind, s, c in _STATUS if isinstance(error, kind))
    details = []
    if isinstance(error, CronError):
        details = [
            FieldProblem(
                path=f"/body/{_cron_field(request)}",
                message=f"{problem.field}: {problem.message}",
                position=problem.position,
                suggestion=problem.suggestion or None,
            )
            for problem in error.problems
        ]
    detail = "; ".join(one.message for one in details) or error.message
    headers = {"Retry-After": str(RETRY_AFTER_S)} if status == 503 else None
    return answer(status, code, detail, hint=error.hint, details=details, headers=headers)


def _cron_field(request: Request) -> str:
    return "cron_expression" if request.url.path.endswith("/jobs") else "cron"


async def _malformed(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    details = [
        FieldProblem(path=pointer(one["loc"]), message=_message(one)) for one in error.errors()
    ]
    detail = "; ".join(f"{one.path}: {one.message}" for one in details)
    return answer(400, "invalid", detail, details=details)


def _message(error: Any) -> str:
    if error["type"] == "string_pattern_mismatch":
        pattern = error["ctx"]["pattern"]
        return PATTERNS.get(pattern, f"does not match {pattern}")
    return str(error["msg"])


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
    headers = dict(error.headers) if error.headers else None
    if error.status_code == 405:
        headers = {"Allow": ", ".join(sorted(_methods(request)))}
    hint = "as Authorization: Bearer TOKEN" if error.status_code == 401 else ""
    return answer(error.status_code, code, str(error.detail), hint=hint, headers=headers)


def _methods(request: Request) -> set[str]:
    """Of every route with this path; the router names those of the first one only."""
    found: set[str] = set()
    for route in request.app.routes:
        match, _ = route.matches(request.scope)
        if match is not Match.NONE:
            found |= getattr(route, "methods", None) or set()
    return found


async def _broken(request: Request, error: Exception) -> JSONResponse:
    """Starlette raises it again for the server's own log; the client learns nothing of inside."""
    _log.error("request failed", path=request.url.path, error_details=repr(error))
    return answer(500, "failed", "the scheduler failed on this request", hint="see its log")
