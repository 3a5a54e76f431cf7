"""What order entry needs of others: a durable record, and links to venues. Adapters and simulations implement them."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from htfi.domain.orders import CancelRequest, NewOrder, OrderEvent, ReplaceRequest

VenueRequest = NewOrder | ReplaceRequest | CancelRequest


class OrderRecord(Protocol):
    """The order event stream, in order. What was appended survives the loss of power."""

    def append(self, events: Sequence[OrderEvent]) -> None:
        """Record all or none. Raises: DependencyUnavailable, IntegrityError."""
        ...


class VenueLink(Protocol):
    """One venue: requests go out, reports and market data come back."""

    def send(self, request: VenueRequest) -> None:
        """Hand a request over. It is recorded already. Raises: DependencyUnavailable where the link is down."""
        ...

    def next(self, until_ns: int) -> OrderEvent | None:
        """The next report or market data that has arrived by an instant, in order of arrival; None where none has."""
        ...


@runtime_checkable
class MassCancelLink(Protocol):
    """A link that cancels several orders by one message where its venue takes that."""

    def cancel_together(self, requests: Sequence[CancelRequest]) -> None:
        """Hand cancels over that are wanted together. They are recorded already. Raises: as `VenueLink.send`."""
        ...
