"""What a client asks to have worked out: a forecast of posted bars, a scenario on the run."""

from http import HTTPStatus
from typing import TypeVar

import msgspec
from fastapi import APIRouter, Depends, Request, Response

from htfi.apps.service.callers import Scope, needs
from htfi.apps.service.problems import BodyTooLarge
from htfi.apps.service.representations import PostedForecasts
from htfi.apps.service.schema import JSON, gives, takes
from htfi.apps.service.served_run import run_of
from htfi.apps.service.worker import ForecastQuestion, ScenarioQuestion
from htfi.domain.errors import InvalidInput

MAX_BODY_BYTES = 16 << 20
MAX_BARS = 100_000

router = APIRouter(dependencies=[Depends(needs(Scope.ASK))])
T = TypeVar("T", bound=msgspec.Struct)


@router.post(
    "/forecasts",
    summary="Forecast prices that are posted",
    openapi_extra=takes(ForecastQuestion),
    responses=gives(PostedForecasts),
)
async def forecast_bars(request: Request) -> Response:
    """The newest forecast of each series of the bars. Nothing is recorded."""
    body = await read_body(request, ForecastQuestion)
    if len(body.bars) > MAX_BARS:
        raise InvalidInput(f"{len(body.bars):,} bars are more than {MAX_BARS:,}: post the newest")
    return Response(await run_of(request).worker.ask("forecast", body), HTTPStatus.OK, media_type=JSON)


@router.post("/scenarios", summary="What if", openapi_extra=takes(ScenarioQuestion), responses=gives(None))
async def scenario(request: Request) -> Response:
    """What they do to each series and to a book, beside today's forecast: the figures of `htfi scenario --json`."""
    body = await read_body(request, ScenarioQuestion)
    return Response(await run_of(request).worker.ask("scenario", body), HTTPStatus.OK, media_type=JSON)


async def read_body(request: Request, shape: type[T]) -> T:
    """The request's JSON. Raises: InvalidInput, BodyTooLarge."""
    content = await read_content(request)
    try:
        return msgspec.json.decode(content, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"the body is not what this path takes: {error}") from None


async def read_content(request: Request) -> bytes:
    """The bytes of a request that states that it is JSON. Raises: InvalidInput, BodyTooLarge."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise InvalidInput(f"the body is {kind or 'of no stated type'}: send {JSON}")
    parts: list[bytes] = []
    num = 0
    async for part in request.stream():
        num += len(part)
        if num > MAX_BODY_BYTES:
            raise BodyTooLarge(f"the body is larger than {MAX_BODY_BYTES >> 20} MiB")
        parts.append(part)
    return b"".join(parts)
