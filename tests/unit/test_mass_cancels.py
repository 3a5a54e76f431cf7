"""Several cancels by one OrderMassCancelRequest: where it reaches nothing else, and single ones where it fails."""

import pytest
from msgspec import structs
from test_venue_orders import NOW, ORDER, REPORT, VERSIONS, arrived, report

from htfi.domain.orders import (
    AlertRaised,
    CancelRejected,
    CancelRequest,
    OrderCanceled,
    OrderEvent,
    OrderFilled,
)
from htfi.execution.fix.dictionary import load_dictionary
from htfi.execution.fix.mass_cancels import plan_mass_cancels
from htfi.execution.fix.messages import FixMessage
from htfi.execution.fix.venue_orders import VenueOrders

OPEN = {"a1": "AAA", "a2": "AAA", "b1": "BBB", "b2": "BBB"}


def cancel(order_id: str) -> CancelRequest:
    return CancelRequest(at_ns=NOW, order_id=order_id, cl_ord_id=f"{order_id}-x1")


@pytest.mark.parametrize(
    ("wanted", "cancelling", "masses", "single"),
    [
        (["a1", "a2", "b1", "b2"], [], [""], []),
        (["a1", "a2", "b1"], ["b2"], [""], []),
        (["a1", "a2"], [], ["AAA"], []),
        (["a1", "a2", "b1"], [], ["AAA"], ["b1"]),
        (["a1", "b1"], [], [], ["a1", "b1"]),
        (["a1"], ["a2", "b1", "b2"], [], ["a1"]),
    ],
)
def test_a_mass_cancel_is_sent_only_where_it_reaches_no_order_that_shall_stay(
    wanted: list[str], cancelling: list[str], masses: list[str], single: list[str]
) -> None:
    found, alone = plan_mass_cancels([cancel(one) for one in wanted], OPEN, cancelling)
    assert [one.instrument for one in found] == masses
    assert [one.order_id for one in alone] == single
    assert sum(len(one.cancels) for one in found) + len(alone) == len(wanted)


class Desk:
    """Two orders that are open, and one mass cancel of both that was sent as message 9."""

    def __init__(self, version: str = "FIX44") -> None:
        self.orders = VenueOrders(load_dictionary(version), "ab-")
        for order_id in ("d7", "d8"):
            self.orders.compose(structs.replace(ORDER, order_id=order_id))
            self.take(report(REPORT | {11: f"ab-{order_id}", 17: f"A{order_id}"}))
        ((mass,), single) = self.orders.plan_mass_cancels([cancel("d7"), cancel("d8")])
        assert single == []
        self.message = arrived(self.orders.compose_mass_cancel(mass), version)
        self.orders.note_mass_number(9, mass)

    def take(self, *messages: FixMessage) -> list[OrderEvent]:
        return [event for message in messages for event in self.orders.read(message)]

    def singles(self) -> list[str]:
        return [one.cl_ord_id for one in self.orders.single_cancels]


CANCELED = REPORT | {17: "C7", 150: "4", 39: "4"}


@pytest.mark.parametrize("version", VERSIONS)
def test_one_message_stands_for_both_and_each_report_answers_its_cancel(version: str) -> None:
    desk = Desk(version)
    assert (desk.message.msg_type, desk.message.get(11), desk.message.get(530)) == ("q", "ab-d7-x1q", "7")
    accepted = {11: "ab-d7-x1q", 37: "V", 530: "7", 531: "7"}
    if version == "FIX44":
        assert desk.take(report(accepted, "r")) == []
    first = desk.take(report(CANCELED))
    second = desk.take(report(CANCELED | {17: "C8", 11: "ab-d7-x1q", 41: "ab-d8"}))
    found = [(one.order_id, one.cl_ord_id) for one in (*first, *second) if isinstance(one, OrderCanceled)]
    assert found == [("d7", "d7-x1"), ("d8", "d8-x1")]
    assert desk.orders.num_unanswered == 0
    assert not desk.orders.fall_back()


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("r", {11: "ab-d7-x1q", 37: "V", 530: "7", 531: "0", 532: "0"}),
        ("j", {45: "9", 372: "q", 380: "3", 58: "no"}),
        ("j", {45: "99", 372: "q", 379: "ab-d7-x1q", 380: "3", 58: "no"}),
        ("3", {45: "9", 372: "q", 373: "11", 58: "no"}),
    ],
)
def test_a_mass_cancel_that_is_refused_is_followed_by_single_ones_from_then_on(
    kind: str, fields: dict[int, str]
) -> None:
    desk = Desk()
    assert desk.take(report(fields, kind)) == []
    assert desk.singles() == ["d7-x1", "d8-x1"]
    again = [cancel("d7"), cancel("d8")]
    assert desk.orders.plan_mass_cancels(again) == ([], again)


def test_what_a_mass_cancel_did_not_reach_in_time_is_cancelled_singly() -> None:
    desk = Desk()
    desk.take(report({11: "ab-d7-x1q", 37: "V", 530: "7", 531: "7"}, "r"), report(CANCELED))
    assert desk.orders.fall_back()
    assert desk.singles() == ["d8-x1"]
    assert desk.orders.takes_mass_cancels


def test_a_fill_that_crosses_a_mass_cancel_ends_the_wait_for_its_answer() -> None:
    desk = Desk()
    fill = REPORT | {17: "E7", 150: "F", 39: "2", 32: "100", 31: "101.20"}
    (event,) = desk.take(report(fill))
    assert isinstance(event, OrderFilled)
    assert desk.orders.num_unanswered == 1


def test_a_single_cancel_that_comes_after_the_mass_cancel_worked_raises_no_alert() -> None:
    desk = Desk()
    desk.orders.fall_back()
    (late, _) = desk.orders.single_cancels
    desk.orders.compose(late)
    refused = {37: "V", 11: "ab-d7-x1", 41: "ab-d7", 39: "4", 434: "1"}
    found = desk.take(report(CANCELED), report(refused, "9"))
    assert [type(one) for one in found] == [OrderCanceled]
    assert not any(isinstance(one, CancelRejected | AlertRaised) for one in found)
