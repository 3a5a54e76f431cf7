"""What somebody wants to do at a venue, before the gate has judged it. Prices in ticks, quantities in lots."""

import msgspec

from htfi.domain.decision import Receipt
from htfi.domain.orders import CancelRequest, NewOrder, OrderSide, OrderType, ReplaceRequest, TimeInForce
from htfi.execution.instruments import Instrument


class OrderIntent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A wish to send an order, on the strength of a released decision.

    A decision is used once: by one order, or by the orders of one parent, which together have `parent_lots` at most.
    """

    at_ns: int
    order_id: str
    instrument: str
    venue: str
    side: OrderSide
    lots: int
    price_ticks: int | None  # None at market
    receipt: Receipt | None
    order_type: OrderType = OrderType.LIMIT
    stop_ticks: int | None = None
    time_in_force: TimeInForce = TimeInForce.DAY
    display_lots: int | None = None  # None: all of them
    algo: str = ""
    trader: str = ""
    desk: str = ""
    client: str = ""
    account: str = ""
    parent_id: str = ""  # empty: the order is its own parent
    parent_lots: int = 0  # of the parent; 0: those of this order

    def message(self, instrument: Instrument | None) -> NewOrder:
        """The order as it is recorded and sent; without its instrument's grid it has no price."""

        def price(ticks: int | None):
            return None if ticks is None or instrument is None else instrument.price(ticks)

        return NewOrder(
            at_ns=self.at_ns,
            order_id=self.order_id,
            instrument=self.instrument,
            venue=self.venue,
            side=self.side,
            quantity=self.lots,
            order_type=self.order_type,
            price=price(self.price_ticks),
            stop_price=price(self.stop_ticks),
            time_in_force=self.time_in_force,
            display_quantity=self.display_lots,
            algo=self.algo,
            trader=self.trader,
            desk=self.desk,
            client=self.client,
            account=self.account,
            decision=self.receipt,
            parent_id=self.parent_id,
            parent_quantity=self.parent_lots,
        )


class ReplaceIntent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A wish to change an order's quantity, with what is filled, or its price. `cl_ord_id` names the request."""

    at_ns: int
    order_id: str
    cl_ord_id: str
    lots: int
    price_ticks: int | None = None  # None: as it is

    def message(self, instrument: Instrument | None) -> ReplaceRequest:
        """The request as it is recorded and sent."""
        price = None if self.price_ticks is None or instrument is None else instrument.price(self.price_ticks)
        return ReplaceRequest(
            at_ns=self.at_ns,
            order_id=self.order_id,
            cl_ord_id=self.cl_ord_id,
            quantity=self.lots,
            price=price,
        )


class CancelIntent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A wish to cancel an order. No limit and no stop holds it back."""

    at_ns: int
    order_id: str
    cl_ord_id: str
    by: str = ""

    def message(self, instrument: Instrument | None = None) -> CancelRequest:
        """The request as it is recorded and sent."""
        del instrument
        return CancelRequest(at_ns=self.at_ns, order_id=self.order_id, cl_ord_id=self.cl_ord_id, by=self.by)


Intent = OrderIntent | ReplaceIntent | CancelIntent
