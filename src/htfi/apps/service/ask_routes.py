"""What a client asks to have worked out: a forecast of posted bars, a scenario on the run."""

from http import HTTPStatus

from fastapi import APIRouter, Depends, Request, Response

from htfi.apps.service.bodies import read_body
from htfi.apps.service.callers import needs
from htfi.apps.service.metering import meter
from htfi.apps.service.schema import JSON, gives, takes
from htfi.apps.service.served_run import run_of
from htfi.client.bodies import ForecastQuestion, PostedForecasts, ScenarioQuestion
from htfi.domain.errors import InvalidInput
from htfi.library.serving.callers import Scope

MAX_BARS = 100_000

router = APIRouter(dependencies=[Depends(needs(Scope.ASK))])


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
    answer = await run_of(request).worker.ask("forecast", body, meter(request))
    return Response(answer, HTTPStatus.OK, media_type=JSON)


@router.post("/scenarios", summary="What if", openapi_extra=takes(ScenarioQuestion), responses=gives(None))
async def scenario(request: Request) -> Response:
    """What they do to each series and to a book, beside today's forecast: the figures of `htfi scenario --json`."""
    body = await read_body(request, ScenarioQuestion)
    answer = await run_of(request).worker.ask("scenario", body, meter(request))
    return Response(answer, HTTPStatus.OK, media_type=JSON)
