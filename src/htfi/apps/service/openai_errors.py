"""Errors in the form that OpenAI's clients read: one object with a message, a type, the parameter and a code."""

from http import HTTPStatus

import msgspec
from fastapi.responses import Response

from htfi.domain.errors import HtfiError, InvalidInput

RETRY_S = 1
_PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/models")
_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    429: "rate_limit_error",
    503: "service_unavailable_error",
}


class ErrorDetails(msgspec.Struct, frozen=True):
    """What went wrong: in words, its kind, the parameter that it lies in, and a code, where there is one."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(msgspec.Struct, frozen=True):
    """One error, as OpenAI's clients read it."""

    error: ErrorDetails


class BadParameter(InvalidInput):
    """A parameter of a request cannot be used as it is."""

    status = HTTPStatus.BAD_REQUEST

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param, self.code = param, code


class ClientGone(HtfiError):
    """The answer is wanted no more."""

    status = HTTPStatus.REQUEST_TIMEOUT


class ModelNotFound(HtfiError):
    """No model of this name is served."""

    status = HTTPStatus.NOT_FOUND

    def __init__(self, name: str) -> None:
        super().__init__(f"The model `{name[:200]}` does not exist: GET /v1/models lists those that do")
        self.param, self.code = "model", "model_not_found"


def is_openai_path(path: str) -> bool:
    """Whether errors of this path are of OpenAI's form."""
    return path.startswith(_PATHS)


def error_body(status: int, message: str, param: str | None = None, code: str | None = None) -> ErrorBody:
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return ErrorBody(ErrorDetails(message, kind, param, code))


def error_response(status: int, error: Exception | str, headers: dict[str, str] | None = None) -> Response:
    """One error as a response; a service that is full says when to come back."""
    param, code = getattr(error, "param", None), getattr(error, "code", None)
    if status in (429, 503):
        headers = {"Retry-After": str(RETRY_S), **(headers or {})}
    # What is wrong with a request is 400 here, where the paths of our own form answer 422.
    status = HTTPStatus.BAD_REQUEST if status == HTTPStatus.UNPROCESSABLE_ENTITY else status
    body = error_body(status, str(error), param, code if isinstance(code, str) else None)
    return Response(msgspec.json.encode(body), status, headers, "application/json")
