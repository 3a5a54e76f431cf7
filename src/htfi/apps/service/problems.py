"""Errors as `application/problem+json` (RFC 9457): what went wrong, where, and what to do. No traceback leaves."""

from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from htfi.apps.service.openai_errors import error_response, is_openai_path
from htfi.domain.errors import (
    AccessDenied,
    DependencyUnavailable,
    HtfiError,
    IntegrityError,
    InvalidInput,
    MissingExtra,
    NotFound,
    ServiceBusy,
    TooLong,
)
from htfi.wiring.approvals import UnknownQuestion
from htfi.wiring.quarantine import UnknownItem
from htfi.wiring.service.answered_requests import KeyReused, RequestUnderWay, TooManyKeys
from htfi.wiring.trading import NoOrders

MEDIA_TYPE = "application/problem+json"


class BodyTooLarge(HtfiError):
    """A request's body is larger than any may be."""


_STATUS = {
    NoOrders: HTTPStatus.NOT_FOUND,
    UnknownQuestion: HTTPStatus.NOT_FOUND,
    UnknownItem: HTTPStatus.NOT_FOUND,
    KeyReused: HTTPStatus.UNPROCESSABLE_ENTITY,
    RequestUnderWay: HTTPStatus.CONFLICT,
    TooManyKeys: HTTPStatus.TOO_MANY_REQUESTS,
    InvalidInput: HTTPStatus.UNPROCESSABLE_ENTITY,
    AccessDenied: HTTPStatus.FORBIDDEN,
    IntegrityError: HTTPStatus.INTERNAL_SERVER_ERROR,
    DependencyUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    MissingExtra: HTTPStatus.NOT_IMPLEMENTED,
    NotFound: HTTPStatus.NOT_FOUND,
    ServiceBusy: HTTPStatus.SERVICE_UNAVAILABLE,
    TooLong: HTTPStatus.GATEWAY_TIMEOUT,
    BodyTooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
}


_PUBLIC: dict[type[Exception], str] = {
    NoOrders: "this run has no orders: it does not trade"
}  # where a message names a folder


def problem(
    status: int, detail: str, *, instance: str = "", headers: dict[str, str] | None = None
) -> Response:
    """One problem as a response; on a path of OpenAI's form an error of that form."""
    if is_openai_path(instance):
        return error_response(status, detail, headers)
    content = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    if instance:
        content["instance"] = instance
    return JSONResponse(content, status, headers, MEDIA_TYPE)


def status_of(error: HtfiError) -> HTTPStatus:
    """The status that an error of ours is answered with."""
    stated = getattr(error, "status", None)
    if isinstance(stated, HTTPStatus):
        return stated
    found = (status for kind, status in _STATUS.items() if isinstance(error, kind))
    return next(found, HTTPStatus.INTERNAL_SERVER_ERROR)


def add_problems(app: FastAPI) -> None:
    """Have an app answer every error as a problem."""

    async def of_ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, HtfiError)
        if is_openai_path(request.url.path):
            return error_response(status_of(error), error)
        detail = _PUBLIC.get(type(error), str(error))
        return problem(status_of(error), detail, instance=request.url.path)

    async def of_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = None if error.headers is None else dict(error.headers)
        return problem(error.status_code, str(error.detail), instance=request.url.path, headers=headers)

    async def of_validation(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"{where}: {first['msg']}", instance=request.url.path)

    async def of_gone(request: Request, error: Exception) -> Response:
        del error  # the client has left in the middle of its body: this is not read
        return problem(HTTPStatus.BAD_REQUEST, "the body ended before its end", instance=request.url.path)

    async def of_others(request: Request, error: Exception) -> Response:
        del error  # its words may hold what no client should see; the server's log has them
        detail = "the service failed at this request; its log says why"
        return problem(HTTPStatus.INTERNAL_SERVER_ERROR, detail, instance=request.url.path)

    app.add_exception_handler(HtfiError, of_ours)
    app.add_exception_handler(HTTPException, of_http)
    app.add_exception_handler(RequestValidationError, of_validation)
    app.add_exception_handler(ClientDisconnect, of_gone)
    app.add_exception_handler(Exception, of_others)
