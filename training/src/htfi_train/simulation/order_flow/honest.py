"""Honest parties: market makers, executions in slices, rebalancers at the close, clients that trade once."""

from htfi_train.simulation.order_flow.session import PartyOrder, TradingSession


class MarketMaker:
    """Quotes both sides at a few prices, follows the mid, leans against its inventory, pulls both sides at times."""

    def __init__(
        self, session: TradingSession, client: str, *, lots: int, num_levels: int, refresh_s: float
    ) -> None:
        self._session, self._client = session, client
        self._lots, self._num_levels, self._refresh_s = lots, num_levels, refresh_s
        self._inventory = 0
        self._orders: list[PartyOrder] = []
        self._quoted_mid = 0.0
        session.on_fill[client] = self._filled
        session.at(session.exponential(refresh_s), self._refresh)

    def _refresh(self) -> None:
        session = self._session
        if session.now_s > session.end_s - 5.0:
            return
        if abs(session.mid - self._quoted_mid) >= 1.0 or not any(one.is_open for one in self._orders):
            self._requote()
        session.at(session.now_s + session.exponential(self._refresh_s), self._refresh)

    def _requote(self) -> None:
        session = self._session
        for order in self._orders:
            session.cancel(order)
        self._quoted_mid = session.mid
        lean = max(-0.7, min(0.7, self._inventory / (20.0 * self._lots)))
        self._orders = [
            session.send(
                self._client, side, max(1, round(self._lots * (1.0 - side * lean))),
                (session.bid - level) if side == 1 else (session.ask + level),
            )
            for side in (1, -1)
            for level in range(self._num_levels)
        ]  # fmt: skip

    def _filled(self, order: PartyOrder, quantity: int, price: int) -> None:
        del price
        self._inventory += order.side * quantity
        session = self._session
        if session.rng.chance(0.3):  # it fears to be picked off, and quotes anew
            session.at(session.now_s + session.exponential(0.8), self._requote)


class SlicedExecution:
    """A large order in slices (TWAP): each rests for a while and then takes, until all is done."""

    def __init__(
        self, session: TradingSession, client: str, *, side: int, lots: int, start_s: float, length_s: float
    ) -> None:
        self._session, self._client, self._side = session, client, side
        self._slice_s = 25.0
        self._num_left = max(1, round(length_s / self._slice_s))
        self._lots = max(1, round(lots / self._num_left))
        session.at(start_s, self._slice)

    def _slice(self) -> None:
        session = self._session
        if self._num_left <= 0 or session.now_s > session.end_s - 3.0:
            return
        self._num_left -= 1
        resting = session.send(
            self._client, self._side, self._lots, session.bid if self._side == 1 else session.ask
        )
        session.at(session.now_s + session.rng.uniform_between(6.0, 15.0), lambda: self._finish(resting))
        session.at(session.now_s + self._slice_s * session.rng.uniform_between(0.8, 1.2), self._slice)

    def _finish(self, order: PartyOrder) -> None:
        session = self._session
        left = order.leaves
        if not order.is_open or session.now_s > session.end_s - 1.0:
            return
        session.cancel(order)
        session.send(self._client, self._side, left, session.ask + 2 if self._side == 1 else session.bid - 2)


class UrgentExecution:
    """Takes a good part of the volume over some minutes because it has to, and keeps what it bought."""

    def __init__(self, session: TradingSession, client: str, *, start_s: float) -> None:
        self._session, self._client = session, client
        self._side = 1 if session.rng.chance(0.5) else -1
        self._num_left = 10
        session.at(start_s, self._act)

    def _act(self) -> None:
        session = self._session
        self._num_left -= 1
        limit = session.ask if self._side == 1 else session.bid
        session.send(self._client, self._side, session.size(25.0), limit)
        if self._num_left:
            session.at(session.now_s + session.exponential(25.0), self._act)


class Rebalancer:
    """An index fund: orders at the close, entered early, and part of it worked over the last minutes."""

    def __init__(self, session: TradingSession, client: str, *, side: int, lots: int) -> None:
        self._session, self._client, self._side = session, client, side
        session.at(session.end_s - session.rng.uniform_between(300.0, 900.0), lambda: self._enter(lots))
        SlicedExecution(
            session, client, side=side, lots=max(1, lots // 4), start_s=session.end_s - 500.0, length_s=480.0
        )

    def _enter(self, lots: int) -> None:
        self._session.send(self._client, self._side, lots, None, at_close=True)


class OccasionalClient:
    """Trades now and then, at market or at a limit that it later cancels or changes its mind about."""

    def __init__(self, session: TradingSession, client: str, *, every_s: float) -> None:
        self._session, self._client, self._every_s = session, client, every_s
        session.at(session.exponential(every_s), self._act)

    def _act(self) -> None:
        session = self._session
        if session.now_s > session.end_s - 5.0:
            return
        side = 1 if session.rng.chance(0.5) else -1
        lots = session.size(8.0)
        if session.rng.chance(0.5):
            session.send(self._client, side, lots, None)
        else:
            distance = session.rng.integer(4)
            order = session.send(
                self._client, side, lots, (session.bid - distance) if side == 1 else (session.ask + distance)
            )
            session.at(session.now_s + session.exponential(40.0), lambda: session.cancel(order))
        session.at(session.now_s + session.exponential(self._every_s), self._act)


def add_honest_parties(session: TradingSession) -> tuple[str, ...]:
    """The parties of an ordinary session; their names."""
    rng = session.rng
    MarketMaker(session, "maker-a", lots=6, num_levels=1, refresh_s=2.0)
    MarketMaker(session, "maker-b", lots=10, num_levels=3, refresh_s=4.0)
    for k, (share, start) in enumerate(((0.06, 200.0), (0.14, 700.0))):
        lots = round(share * 3.5 * 1_200.0)
        side = 1 if rng.chance(0.5) else -1
        SlicedExecution(session, f"slices-{k}", side=side, lots=lots, start_s=start, length_s=1_200.0)
    Rebalancer(session, "index-fund", side=1 if rng.chance(0.5) else -1, lots=150 + rng.integer(250))
    UrgentExecution(session, "urgent", start_s=rng.uniform_between(400.0, session.end_s - 500.0))
    for k in range(4):
        OccasionalClient(session, f"client-{k}", every_s=90.0 + 60.0 * k)
    return (
        "maker-a",
        "maker-b",
        "slices-0",
        "slices-1",
        "index-fund",
        "urgent",
        *(f"client-{k}" for k in range(4)),
    )
