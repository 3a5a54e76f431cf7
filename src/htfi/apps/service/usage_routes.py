"""What the caller's tenant has used."""

import time
from datetime import date
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from htfi.apps.service.callers import Scope, caller_of, needs
from htfi.apps.service.record_routes import json_response
from htfi.apps.service.schema import gives
from htfi.apps.service.session_routes import tenants_of
from htfi.client.bodies import UsagePage
from htfi.domain.errors import InvalidInput
from htfi.tenancy.usage import day_of
from htfi.wiring.service.usage import usage_rows

MAX_DAYS = 366
router = APIRouter(dependencies=[Depends(needs(Scope.READ))])
Day = Annotated[date | None, Query(description="a day of UTC, such as 2026-11-28")]


@router.get("/usage", summary="What the tenant has used", responses=gives(UsagePage))
async def usage(
    request: Request,
    first: Annotated[date | None, Query(alias="from", description="first day, UTC; without: today")] = None,
    to: Day = None,
) -> Response:
    """All that was counted up to now, by day and key; 366 days at most."""
    tenants, caller = tenants_of(request), caller_of(request)
    today = day_of(time.time_ns())
    last_day = today if to is None else (to - date(1970, 1, 1)).days
    first_day = last_day if first is None else (first - date(1970, 1, 1)).days
    if not 0 <= last_day - first_day < MAX_DAYS:
        raise InvalidInput(f"from and to: ask for 1 to {MAX_DAYS} days, the first one first")
    await tenants.store_now()
    currency = tenants.config.prices.currency
    rows = await tenants.ask(lambda store: usage_rows(store, currency, first_day, last_day, caller.tenant))
    return json_response(UsagePage(rows), {"Cache-Control": "no-store"})
