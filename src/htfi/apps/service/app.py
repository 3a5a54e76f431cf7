"""The service's web application: routes over the record of one run, errors as problems, the page."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from htfi import __version__
from htfi.apps.service import ask_routes, record_routes, streams, tiles
from htfi.apps.service.chart import ChartBody
from htfi.apps.service.openai_api import routes as openai_routes
from htfi.apps.service.openai_api.requests import ChatCompletionRequest, CompletionRequest, EmbeddingRequest
from htfi.apps.service.openai_api.served_models import ServedModels
from htfi.apps.service.problems import add_problems, problem
from htfi.apps.service.record_routes import json_response
from htfi.apps.service.representations import SHAPES, Health
from htfi.apps.service.schema import add_schemas, gives
from htfi.apps.service.served_run import ServedRun, record_of
from htfi.apps.service.worker import ForecastQuestion, ScenarioQuestion
from htfi.wiring.service.record import is_followed_run_live

_OPENAI = (ChatCompletionRequest, CompletionRequest, EmbeddingRequest)
_NAMES = ("127.0.0.1", "localhost", "[::1]")
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (
        b"content-security-policy",
        b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    ),
)


def create_app(folders: Mapping[str, Path], target: str = "", draft: str = "") -> FastAPI:
    """The application that serves a run's folder for each tenant; it follows the runs while it is up.

    `target` and `draft` are folders of language models, the shipped ones by default.

    Without keys there is one tenant, "".
    """
    models = ServedModels(target, draft)
    runs = {tenant: ServedRun(folder) for tenant, folder in folders.items()}

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        for run in runs.values():
            run.open()
        yield
        for run in runs.values():
            await run.close()
        await models.close()

    app = FastAPI(
        title="HTFI",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
    )
    app.state.runs, app.state.models = runs, models
    add_problems(app)
    add_schemas(app, (*SHAPES, ChartBody, ForecastQuestion, ScenarioQuestion, *_OPENAI))
    app.include_router(record_routes.router, prefix="/v1")
    app.include_router(streams.router, prefix="/v1")
    app.include_router(ask_routes.router, prefix="/v1")
    app.include_router(openai_routes.generating, prefix="/v1")
    app.include_router(openai_routes.reading, prefix="/v1")
    app.include_router(tiles.router)
    app.add_middleware(BrowserRules)
    app.add_api_route(
        "/v1/health",
        _health,
        methods=["GET"],
        summary="Whether the service and its run are well",
        responses=gives(Health),
    )
    app.mount("/", GZipMiddleware(StaticFiles(packages=[("htfi.apps.service", "page")], html=True)))
    return app


class BrowserRules:
    """What browsers may do: pages of other sites nothing, ours no script, style or address but its own.

    A name that somebody points at this machine is no name of the service (DNS rebinding), and a WebSocket is opened by
    our own page or by a program, which sends no Origin.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        origin = headers.get(b"origin", b"").decode("latin-1")
        is_ours = not origin or origin.partition("://")[2] == host
        if host.rpartition(":")[0] not in _NAMES and host not in _NAMES:
            answer = problem(
                421, f"the service has no name {host[:100]!r}: ask 127.0.0.1", instance=scope["path"]
            )
            await answer(scope, receive, send)
        elif scope["type"] == "websocket" and not is_ours:
            await problem(403, f"{origin[:100]!r} may not open this", instance=scope["path"])(
                scope, receive, send
            )
        else:
            await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)


async def _health(request: Request) -> Response:
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
