"""Orders over HTTP, of a run that trades: orders, positions, costs, and what people ask to be cancelled."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response

from htfi.apps.service.acts import IdempotencyKey, named, perform
from htfi.apps.service.bodies import MAX_ACT_BYTES, decode_body, read_bytes
from htfi.apps.service.callers import Scope, needs
from htfi.apps.service.problems import NotFound
from htfi.apps.service.schema import gives, gives_act, takes
from htfi.apps.service.served_run import ServedRun, run_of
from htfi.apps.service.tags import tagged_response
from htfi.client.order_bodies import (
    CancelAllQuestion,
    CancelAnswer,
    CancelQuestion,
    CostsBody,
    OrderBody,
    OrderDetail,
    OrderPage,
    PositionBody,
    PositionsBody,
)
from htfi.domain.orders import encode_order_event
from htfi.domain.time import format_ns
from htfi.execution.accounting import Accounts, OrderAccount, ParentAccount
from htfi.execution.instruments import NANOS
from htfi.execution.trade_costs import COST_KEYS, MARKOUTS_S, CostSurvey, group_costs, sum_costs
from htfi.wiring.request_token import RequestToken
from htfi.wiring.trading import cancel_orders

MAX_PAGE = 500
T = TypeVar("T")

readers = APIRouter(dependencies=[Depends(needs(Scope.READ))])
router = APIRouter(dependencies=[Depends(needs(Scope.ACT))])


SHAPES = (
    CancelQuestion, CancelAllQuestion, OrderBody, OrderPage, OrderDetail, PositionsBody, CostsBody, CancelAnswer
)  # fmt: skip

CostKey = Literal["day", "venue", "algorithm", "instrument", "order"]


@readers.get("/orders", summary="Orders, newest first", responses=gives(OrderPage))
async def list_orders(
    request: Request,
    only_open: Annotated[
        bool, Query(alias="open", description="only those that may still be filled")
    ] = False,
    refused: Annotated[bool, Query(description="only those that the gate or the venue refused")] = False,
    instrument: Annotated[str | None, Query(max_length=200)] = None,
    before: Annotated[int | None, Query(ge=0, le=2**62)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
) -> Response:
    """As `htfi orders list` shows them."""

    def read(survey: CostSurvey) -> OrderPage:
        orders = list(survey.accounts.orders.values())
        stop = len(orders) if before is None else min(max(before - 1, 0), len(orders))
        found: list[OrderBody] = []
        for number in range(stop, 0, -1):
            one = orders[number - 1]
            if (only_open and not one.state.is_open) or (refused and not one.reason):
                continue
            if instrument is not None and one.new.instrument != instrument:
                continue
            if len(found) == limit:
                return OrderPage(found, found[-1].number)
            found.append(_order_body(one, number))
        return OrderPage(found, None)

    return tagged_response(request, await _read(run_of(request), read))


@readers.get("/orders/{order_id}", summary="An order and everything on it", responses=gives(OrderDetail))
async def order(request: Request, order_id: str) -> Response:
    """By its id; of an order that an algorithm worked its children."""

    def read(survey: CostSurvey) -> OrderDetail:
        numbers = {name: number for number, name in enumerate(survey.accounts.orders, 1)}
        parent = survey.accounts.parents.get(order_id)
        if parent is not None:
            children = [_order_body(one, numbers[one.new.order_id]) for one in parent.children]
            return OrderDetail(None, [], _parent_facts(parent), children)
        found = survey.accounts.orders.get(order_id)
        if found is None:
            raise NotFound(f"the run has no order {order_id[:60]!r}: GET /v1/orders lists them")
        messages = [msgspec.json.decode(encode_order_event(event)) for event in found.events]
        return OrderDetail(_order_body(found, numbers[order_id]), messages, None, [])

    return tagged_response(request, await _read(run_of(request), read))


@readers.get("/positions", summary="Positions with profit and loss", responses=gives(PositionsBody))
async def positions(request: Request) -> Response:
    """A row for each account and instrument."""

    def read(survey: CostSurvey) -> PositionsBody:
        accounts = survey.accounts
        return PositionsBody(_positions(accounts), accounts.problems[:100])

    return tagged_response(request, await _read(run_of(request), read))


@readers.get("/costs", summary="What trading cost", responses=gives(CostsBody))
async def costs(request: Request, by: CostKey = "algorithm") -> Response:
    """Slippage, fees, what was missed, and how prices went on after fills: transaction cost analysis."""

    def read(survey: CostSurvey) -> CostsBody:
        found = survey.costs()
        groups = [asdict(one) for one in group_costs(found, COST_KEYS[by])]
        total = asdict(sum_costs("all", found)) if found else None
        return CostsBody(by, list(MARKOUTS_S), groups, total)

    return tagged_response(request, await _read(run_of(request), read))


@router.post(
    "/orders/{order_id}/cancel",
    summary="Cancel an order",
    openapi_extra=takes(CancelQuestion),
    responses=gives_act(CancelAnswer),
)
async def cancel_order(request: Request, order_id: str, idempotency_key: IdempotencyKey = None) -> Response:
    """Of an order that an algorithm works all that it has sent; it sends no more."""
    del idempotency_key  # `perform` reads it
    content = await read_bytes(request, MAX_ACT_BYTES)
    body = decode_body(content, CancelQuestion)
    run, by = run_of(request), named(request, body.by)

    def is_known(survey: CostSurvey) -> bool:
        return order_id in survey.accounts.orders or order_id in survey.accounts.parents

    def act(token: RequestToken) -> tuple[int, CancelAnswer]:
        with run.orders.reading() as survey:
            if not is_known(survey):
                raise NotFound(f"the run has no order {order_id[:60]!r}: GET /v1/orders lists them")
        goes_on = cancel_orders(run.folder, "", order_id, by, body.why, token)
        return 202, CancelAnswer(f"asked to cancel {order_id}; {_when(goes_on)}")

    return await perform(request, content, act)


@router.post(
    "/orders/cancel",
    summary="Cancel every open order of a scope",
    openapi_extra=takes(CancelAllQuestion),
    responses=gives_act(CancelAnswer),
)
async def cancel_all_orders(request: Request, idempotency_key: IdempotencyKey = None) -> Response:
    """The run trades on afterwards: `POST /v1/stop` ends that."""
    del idempotency_key
    content = await read_bytes(request, MAX_ACT_BYTES)
    body = decode_body(content, CancelAllQuestion)
    run, by = run_of(request), named(request, body.by)

    def act(token: RequestToken) -> tuple[int, CancelAnswer]:
        goes_on = cancel_orders(run.folder, body.scope, "", by, body.why, token)
        return 202, CancelAnswer(f"asked to cancel all of {body.scope}; {_when(goes_on)}")

    return await perform(request, content, act)


async def _read(run: ServedRun, read: Callable[[CostSurvey], T]) -> T:
    def in_thread() -> T:
        with run.orders.reading() as survey:
            return read(survey)

    return await run.files.call(in_thread)


def _when(goes_on: bool) -> str:
    return (
        "the run does it with its next event" if goes_on else "the run has ended: it does it when it resumes"
    )


def _order_body(order: OrderAccount, number: int) -> OrderBody:
    new = order.new
    return OrderBody(
        number=number,
        order=new.order_id,
        sent=format_ns(new.at_ns),
        instrument=new.instrument,
        venue=new.venue,
        side=new.side.value,
        lots=order.state.quantity,
        limit=None if new.price is None else str(new.price),
        status=order.state.status.value,
        is_open=order.state.is_open,
        filled=order.state.filled,
        average_price=order.average_price,
        fees=order.fees / NANOS,
        slippage_bps=order.slippage_bps,
        parent=new.parent_id or None,
        decision=None if new.decision is None else new.decision.index,
        reason=order.reason,
    )


def _parent_facts(parent: ParentAccount) -> dict[str, Any]:
    stated: dict[str, Any] = msgspec.json.decode(encode_order_event(parent.order))
    return stated | {
        "filled": parent.filled,
        "average_price": parent.average_price,
        "fees": parent.fees / NANOS,
        "slippage_bps": parent.slippage_bps,
        "urgencies": [msgspec.to_builtins(one) for one in parent.urgencies],
    }


def _positions(accounts: Accounts) -> list[PositionBody]:
    found: list[PositionBody] = []
    for one in accounts.positions.values():
        unrealised = one.unrealised(accounts.unit(one.instrument))
        found.append(
            PositionBody(
                account=one.account,
                instrument=one.instrument,
                lots=one.lots,
                price=one.mark / NANOS if one.mark else None,
                realised=one.realised / NANOS,
                unrealised=unrealised / NANOS,
                fees=one.fees / NANOS,
                net=(one.realised + unrealised - one.fees) / NANOS,
                shortfall=one.shortfall / NANOS,
                traded=one.traded / NANOS,
                num_fills=one.num_fills,
            )
        )
    return found
