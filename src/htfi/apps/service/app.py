"""The service's web application: routes over the record of one run, errors as problems, the page."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request, Response
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.staticfiles import StaticFiles
from starlette.routing import Match, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from htfi import __version__
from htfi.apps.service import (
    ask_routes,
    governance_routes,
    news_routes,
    node_routes,
    order_routes,
    quarantine_routes,
    record_routes,
    session_routes,
    streams,
    tiles,
    usage_routes,
)
from htfi.apps.service.agents import AgentTools
from htfi.apps.service.callers import NOBODY, caller_of
from htfi.apps.service.identity import CallerIdentity
from htfi.apps.service.measuring import measure
from htfi.apps.service.openai_api import routes as openai_routes
from htfi.apps.service.openai_api.served_models import ServedModels
from htfi.apps.service.problems import add_problems, problem
from htfi.apps.service.record_routes import json_response
from htfi.apps.service.schema import add_schemas, gives
from htfi.apps.service.served_run import ServedRun, record_of
from htfi.apps.service.tenants import Tenants
from htfi.client.bodies import ANSWERS, QUESTIONS, Health
from htfi.domain.errors import is_installed
from htfi.library.serving.answer_turns import AnswerTurns
from htfi.wiring.service.language_models import SHIPPED_PAIR, LanguageModelPair
from htfi.wiring.service.reading_rights import ReadingRights
from htfi.wiring.service.record import is_followed_run_live
from htfi.wiring.service.run_process import RunPlace
from htfi.wiring.telemetry import NO_PROCESS_TELEMETRY, ProcessTelemetry

if TYPE_CHECKING:
    from htfi.apps.mcp.mount import MountedServer

_NAMES = ("127.0.0.1", "localhost", "[::1]")
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (
        b"content-security-policy",
        b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    ),
)


def create_app(
    places: Mapping[str, RunPlace],
    tenants: Tenants | None = None,
    telemetry: ProcessTelemetry = NO_PROCESS_TELEMETRY,
    models: LanguageModelPair = SHIPPED_PAIR,
) -> FastAPI:
    """The application that serves a run's folder for each tenant; it follows the runs while it is up.

    Without keys, where no tenants are given, there is one: "". `telemetry` counts its requests; the language models
    write and embed for every tenant.
    """
    weights: Mapping[str, float] = {} if tenants is None else tenants.weights
    turns = AnswerTurns(weights)
    runs = {tenant: ServedRun(place, tenant, turns) for tenant, place in places.items()}
    served_models = ServedModels(models, weights)
    names = (*_NAMES, *(() if tenants is None else tenants.config.names))
    agents = _agents(runs, names, has_keys=tenants is not None)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        for run in runs.values():
            run.open()
        if tenants is not None:
            tenants.rights = {tenant: ReadingRights(place) for tenant, place in places.items()}
            tenants.sizes = lambda: {tenant: run.record.size for tenant, run in runs.items()}
            await tenants.open()
        async with nullcontext() if agents is None else agents.running():
            yield
        for run in runs.values():
            await run.close()
        await served_models.close()
        if tenants is not None:
            await tenants.close()

    app = FastAPI(
        title="HTFI",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
    )
    app.state.runs, app.state.models = runs, served_models
    app.state.tenants = tenants
    add_problems(app)
    shapes = [*ANSWERS, *QUESTIONS, *openai_routes.SHAPES]
    for group in (governance_routes, news_routes, quarantine_routes, order_routes, node_routes):
        shapes += group.SHAPES
        app.include_router(group.readers, prefix="/v1")
        app.include_router(group.router, prefix="/v1")
    add_schemas(app, shapes)
    app.include_router(record_routes.router, prefix="/v1")
    app.include_router(streams.router, prefix="/v1")
    app.include_router(ask_routes.router, prefix="/v1")
    app.include_router(session_routes.router, prefix="/v1")
    app.include_router(usage_routes.router, prefix="/v1")
    app.include_router(openai_routes.generating, prefix="/v1")
    app.include_router(openai_routes.reading, prefix="/v1")
    app.include_router(tiles.router)
    if tenants is not None:
        app.add_middleware(CallerIdentity, tenants=tenants, page_paths=page_paths())
    app.add_middleware(BrowserRules, names=names)
    app.add_api_route(
        "/v1/health",
        _health,
        methods=["GET"],
        summary="Whether the service and its run are well",
        responses=gives(Health),
    )
    if agents is not None:
        app.router.routes.append(Route("/mcp", agents))
    measure(app, runs, telemetry)
    page = GZipMiddleware(StaticFiles(packages=[("htfi.apps.service", "page")], html=True))
    app.router.routes.append(_PageFiles("/", page))
    return app


class _PageFiles(Mount):
    """Every path but those of the API: a method that one of these does not take is said to be that."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] == "http" and scope["path"].startswith("/v1/"):
            return Match.NONE, {}
        return super().matches(scope)


def _agents(runs: Mapping[str, ServedRun], names: Sequence[str], *, has_keys: bool) -> AgentTools | None:
    """Tools for agents at /mcp, where the extra `[mcp]` is installed."""

    def make() -> "MountedServer":
        from htfi.apps.mcp.mount import MountedServer

        return MountedServer(runs, names, has_keys=has_keys)

    return AgentTools(make) if is_installed("mcp") else None


def page_paths() -> list[str]:
    """The paths of the page's files."""
    page = Path(__file__).with_name("page")
    return ["/", *(f"/{one.relative_to(page).as_posix()}" for one in page.rglob("*") if one.is_file())]


class BrowserRules:
    """What browsers may do: pages of other sites nothing, ours no script, style or address but its own.

    A name that somebody points at this machine is no name of the service (DNS rebinding), and a WebSocket is opened by
    our own page or by a program, which sends no Origin.
    """

    def __init__(self, app: ASGIApp, names: Sequence[str] = _NAMES) -> None:
        self._app, self._names = app, frozenset(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        names = [name for name, _ in scope["headers"]]
        if names.count(b"host") > 1:
            await problem(400, "the request names two hosts", instance=scope["path"])(scope, receive, send)
            return
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        origin = headers.get(b"origin", b"").decode("latin-1")
        is_ours = not origin or origin.partition("://")[2] == host
        if host.rpartition(":")[0] not in self._names and host not in self._names:
            detail = f"the service has no name {host[:100]!r}: ask 127.0.0.1, or add it to its names"
            answer = problem(421, detail, instance=scope["path"])
            await answer(scope, receive, send)
        elif scope["type"] == "websocket" and not is_ours:
            await problem(403, f"{origin[:100]!r} may not open this", instance=scope["path"])(
                scope, receive, send
            )
        else:
            await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)


async def _health(request: Request) -> Response:
    if caller_of(request) is NOBODY:  # a probe has no key, and gets no figures
        runs: dict[str, ServedRun] = request.app.state.runs
        is_well = all(run.record.failure is None for run in runs.values())
        response = json_response(Health("ok" if is_well else "failed", "", False, 0, 0))
        response.status_code = 200 if is_well else 503
        return response
    record = record_of(request)
    is_well = record.failure is None
    response = json_response(
        Health(
            "ok" if is_well else "failed",
            "" if is_well else str(record.failure),
            is_followed_run_live(record.folder),
            record.size,
            len(record.series),
        )
    )
    response.status_code = 200 if is_well else 503
    return response
