"""The page's session: a key is given once and exchanged for a cookie that scripts cannot read."""

import time
from http import HTTPStatus

from fastapi import APIRouter, Request, Response

from htfi.apps.service.ask_routes import read_body
from htfi.apps.service.callers import caller_of
from htfi.apps.service.identity import (
    COOKIE,
    SECURE_COOKIE,
    address_of,
    check_same_site,
    credentials_of,
)
from htfi.apps.service.problems import NotFound
from htfi.apps.service.record_routes import json_response
from htfi.apps.service.schema import gives, takes
from htfi.apps.service.tenants import Tenants
from htfi.client.bodies import GivenKey, SessionBody

router = APIRouter()


@router.get("/session", summary="Who asks", responses=gives(SessionBody))
async def session(request: Request) -> Response:
    """The caller's tenant, name and scopes; without keys the local user's."""
    caller = caller_of(request)
    body = SessionBody(caller.tenant, caller.name, sorted(caller.scopes))
    return json_response(body, {"Cache-Control": "no-store"})


@router.post(
    "/session", summary="Begin a session", openapi_extra=takes(GivenKey), responses=gives(SessionBody)
)
async def begin_session(request: Request) -> Response:
    """Sets a cookie in place of the key; it ends with the browser, after twelve hours, or with the key."""
    tenants = tenants_of(request)
    given = credentials_of(request.scope)
    if given.origin or given.fetch_site:
        check_same_site(given, "POST", False)
    body, now_ns = await read_body(request, GivenKey), time.time_ns()
    caller = await tenants.identify(body.key, address_of(request.scope), now_ns)
    secret = tenants.begin_session(caller, now_ns)
    answer = json_response(SessionBody(caller.tenant, caller.name, sorted(caller.scopes)))
    is_secure = request.url.scheme == "https"
    answer.headers["Cache-Control"] = "no-store"
    answer.set_cookie(
        SECURE_COOKIE if is_secure else COOKIE,
        secret,
        path="/",
        secure=is_secure,
        httponly=True,
        samesite="strict",
    )
    return answer


@router.delete("/session", summary="End the session", status_code=HTTPStatus.NO_CONTENT)
async def end_session(request: Request) -> Response:
    """What the cookie stood for is forgotten."""
    given = credentials_of(request.scope)
    if given.cookie is not None:
        tenants_of(request).end_session(given.cookie)
    answer = Response(status_code=HTTPStatus.NO_CONTENT)
    answer.delete_cookie(SECURE_COOKIE if request.url.scheme == "https" else COOKIE, path="/")
    return answer


def tenants_of(request: Request) -> Tenants:
    """Raises: NotFound where the service has no keys."""
    tenants: Tenants | None = request.app.state.tenants
    if tenants is None:
        raise NotFound("the service has no keys, and needs none")
    return tenants
