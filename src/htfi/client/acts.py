"""Requests of people and operators as values: governance, news, orders, nodes, usage. `Client.send` sends them.

What acts carries a key of its own, so that a client that has lost the answer asks again and the act is done once.
"""

from typing import Literal
from urllib.parse import quote
from uuid import uuid4

import msgspec

from htfi.client.bodies import UsagePage
from htfi.client.calls import Call, T
from htfi.client.governance_bodies import (
    AdmissionBody,
    AdmissionQuestion,
    AnswerBody,
    AnswerQuestion,
    BreakersBody,
    ClearingBody,
    ClearingQuestion,
    ControlAnswer,
    ControlBody,
    DelegateQuestion,
    PolicyBody,
    QuarantineBody,
    QuarantinePage,
    QuestionBody,
    QuestionPage,
    ReenableQuestion,
    StopQuestion,
    SuspicionBody,
)
from htfi.client.news_bodies import NewsPage, NewsReceipt, NewsSubmission, PostedItemBody, SubmittedItem
from htfi.client.node_bodies import NodesBody
from htfi.client.order_bodies import (
    CancelAllQuestion,
    CancelAnswer,
    CancelQuestion,
    CostsBody,
    OrderDetail,
    OrderPage,
    PositionsBody,
)

CostKey = Literal["day", "venue", "algorithm", "instrument", "order"]


def policy() -> Call[PolicyBody]:
    """The limits in force, and who signed them."""
    return Call("GET", "/v1/policy", PolicyBody)


def breakers() -> Call[BreakersBody]:
    return Call("GET", "/v1/breakers", BreakersBody)


def control() -> Call[ControlBody]:
    """What holds the run back."""
    return Call("GET", "/v1/control", ControlBody)


def stop(question: StopQuestion) -> Call[ControlAnswer]:
    """Release nothing of a scope."""
    return _act("/v1/stop", question, ControlAnswer)


def reenable(question: ReenableQuestion) -> Call[ControlAnswer]:
    return _act("/v1/reenable", question, ControlAnswer)


def approvals(*, with_decided: bool = False, after: int = 0, limit: int = 100) -> Call[QuestionPage]:
    """Decisions that wait for people, oldest first."""
    query = {"all": str(with_decided).lower(), "after": after, "limit": limit}
    return Call("GET", "/v1/approvals", QuestionPage, query)


def approval(number: int) -> Call[QuestionBody]:
    return Call("GET", f"/v1/approvals/{number:d}", QuestionBody)


def answer(
    number: int, kind: Literal["approve", "deny", "acknowledge"], question: AnswerQuestion
) -> Call[AnswerBody]:
    """A person's answer to a question."""
    return _act(f"/v1/approvals/{number:d}/{kind}", question, AnswerBody)


def delegate(number: int, question: DelegateQuestion) -> Call[AnswerBody]:
    return _act(f"/v1/approvals/{number:d}/delegate", question, AnswerBody)


def quarantine(
    *, source: str | None = None, rule: str | None = None, before: int | None = None, limit: int = 100
) -> Call[QuarantinePage]:
    """News that is held back, newest first."""
    query = {"source": source, "rule": rule, "before": before, "limit": limit}
    return Call("GET", "/v1/quarantine", QuarantinePage, _given(query))


def quarantined(item: str) -> Call[QuarantineBody]:
    return Call("GET", f"/v1/quarantine/{_part(item)}", QuarantineBody)


def admit(item: str, question: AdmissionQuestion) -> Call[AdmissionBody]:
    """A person's word that lets an item enter the run."""
    return _act(f"/v1/quarantine/{_part(item)}/admit", question, AdmissionBody)


def suspicion() -> Call[SuspicionBody]:
    return Call("GET", "/v1/suspicion", SuspicionBody)


def clear_suspicion(question: ClearingQuestion) -> Call[ClearingBody]:
    return _act("/v1/suspicion/clear", question, ClearingBody)


def submit_news(items: list[SubmittedItem]) -> Call[NewsReceipt]:
    """News for the run, at most 100 items; durable when this is answered."""
    return _act("/v1/news", NewsSubmission(items), NewsReceipt)


def news(*, before: int | None = None, limit: int = 100) -> Call[NewsPage]:
    """What was handed in, newest first."""
    return Call("GET", "/v1/news", NewsPage, _given({"before": before, "limit": limit}))


def news_item(item: str) -> Call[PostedItemBody]:
    """What became of an item."""
    return Call("GET", f"/v1/news/{_part(item)}", PostedItemBody)


def orders(
    *,
    only_open: bool = False,
    only_refused: bool = False,
    instrument: str | None = None,
    before: int | None = None,
    limit: int = 100,
) -> Call[OrderPage]:
    """Orders, newest first."""
    query: dict[str, str | int | None] = {"instrument": instrument, "before": before, "limit": limit}
    query |= {"open": str(only_open).lower(), "refused": str(only_refused).lower()}
    return Call("GET", "/v1/orders", OrderPage, _given(query))


def order(name: str) -> Call[OrderDetail]:
    return Call("GET", f"/v1/orders/{_part(name)}", OrderDetail)


def positions() -> Call[PositionsBody]:
    return Call("GET", "/v1/positions", PositionsBody)


def costs(by: CostKey = "algorithm") -> Call[CostsBody]:
    """What trading cost, by group."""
    return Call("GET", "/v1/costs", CostsBody, {"by": by})


def cancel_order(name: str, question: CancelQuestion) -> Call[CancelAnswer]:
    return _act(f"/v1/orders/{_part(name)}/cancel", question, CancelAnswer)


def cancel_orders(question: CancelAllQuestion) -> Call[CancelAnswer]:
    """Cancel every open order of a scope."""
    return _act("/v1/orders/cancel", question, CancelAnswer)


def nodes() -> Call[NodesBody]:
    """Nodes, links, queues and energy."""
    return Call("GET", "/v1/nodes", NodesBody)


def usage(first_day: str = "", last_day: str = "") -> Call[UsagePage]:
    """What the tenant has used, by day and key; days as 2026-11-01, UTC."""
    return Call("GET", "/v1/usage", UsagePage, _given({"from": first_day or None, "to": last_day or None}))


def _act(path: str, question: msgspec.Struct, shape: type[T]) -> Call[T]:
    return Call("POST", path, shape, body=question, key=str(uuid4()))


def _part(name: str) -> str:
    return quote(name, safe="")


def _given(query: dict[str, str | int | None]) -> dict[str, str | int]:
    return {name: value for name, value in query.items() if value is not None}
