"""Which cancels one OrderMassCancelRequest (35=q) stands for: of all open orders, or of all in an instrument.

A mass cancel reaches every order of the session, so that it is sent only where no order stays open that nobody wants
cancelled. Pure.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from htfi.domain.orders import CancelRequest

MIN_CANCELS = 2  # fewer go as single requests


class MassCancel(NamedTuple):
    """One request for several cancels; `instrument` empty: all open orders. `name` is its own id."""

    name: str
    instrument: str
    cancels: tuple[CancelRequest, ...]


def mass_name(first: CancelRequest) -> str:
    """The id of the mass cancel whose first cancel this is."""
    return f"{first.cl_ord_id}q"


def plan_mass_cancels(
    cancels: Sequence[CancelRequest], open_orders: Mapping[str, str], cancelling: Collection[str]
) -> tuple[list[MassCancel], list[CancelRequest]]:
    """Mass cancels, and the cancels that go as single requests.

    `open_orders` gives the instrument of each open order by id; those in `cancelling` are being cancelled already.
    """
    wanted = {one.order_id for one in cancels}
    kept = {symbol for order_id, symbol in open_orders.items() if order_id not in wanted | set(cancelling)}
    if len(cancels) < MIN_CANCELS:
        return [], list(cancels)
    if not kept:
        return [MassCancel(mass_name(cancels[0]), "", tuple(cancels))], []
    masses: list[MassCancel] = []
    single: list[CancelRequest] = []
    by_symbol: dict[str, list[CancelRequest]] = {}
    for one in cancels:
        by_symbol.setdefault(open_orders.get(one.order_id, ""), []).append(one)
    for symbol, group in by_symbol.items():
        if symbol and symbol not in kept and len(group) >= MIN_CANCELS:
            masses.append(MassCancel(mass_name(group[0]), symbol, tuple(group)))
        else:
            single += group
    return masses, single
