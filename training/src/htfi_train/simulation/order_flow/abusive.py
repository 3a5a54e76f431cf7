"""Parties that abuse the market, each pattern at three strengths. The weak ones are small, slow and half-hearted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from htfi_train.simulation.order_flow.session import PartyOrder, TradingSession

ABUSER = "abuser"
ACCOMPLICE = "accomplice"


class AbusePattern(StrEnum):
    """The pattern, by the id of the check that looks for it."""

    LAYERING = "layering"
    SPOOFING = "spoofing"
    WASH_TRADES = "wash-trades"
    RAMPING = "ramping"
    MARKING_THE_CLOSE = "marking-the-close"
    MOMENTUM_IGNITION = "momentum-ignition"


@dataclass(frozen=True, slots=True)
class Strength:
    """How openly a pattern is pursued: its size, its pace, and how many episodes a session has."""

    name: str
    size: float
    delay_s: float
    num_episodes: int


STRENGTHS = (Strength("weak", 0.6, 5.0, 4), Strength("medium", 1.0, 2.0, 7), Strength("strong", 2.0, 0.6, 12))


def add_abuser(session: TradingSession, pattern: AbusePattern, strength: Strength) -> None:
    """Add the party `ABUSER`, who pursues the pattern besides some ordinary trades."""
    for k in range(6):
        session.at(
            session.rng.uniform_between(60.0, session.end_s - 400.0),
            lambda k=k: session.send(ABUSER, 1 if k % 2 else -1, session.size(3.0), None) and None,
        )
    _PATTERNS[pattern](session, strength)


def _episodes(session: TradingSession, num: int, first_s: float, act: Callable[[], None]) -> None:
    span = (session.end_s - 200.0 - first_s) / num
    for k in range(num):
        session.at(first_s + span * (k + session.rng.uniform_between(0.1, 0.7)), act)


def _show_and_trade(session: TradingSession, strength: Strength, num_orders: int) -> None:
    """A small order to trade on one side; others, shown on the other side behind the best price, until it has."""
    rng = session.rng
    side = 1 if rng.chance(0.5) else -1
    lots = 4 + rng.integer(6)
    genuine = session.send(ABUSER, side, lots, session.bid if side == 1 else session.ask)
    shown = max(1, round(4.0 * strength.size * lots / num_orders))
    best = session.ask if side == 1 else session.bid
    fakes = [session.send(ABUSER, -side, shown, best + side * (1 + level)) for level in range(num_orders)]
    session.push(side * -0.3 * strength.size)  # others lean away from what is shown
    session.at(
        session.now_s + rng.uniform_between(2.0, 8.0),
        lambda: _trade_and_take_back(session, genuine, fakes, strength),
    )


def _trade_and_take_back(
    session: TradingSession, genuine: PartyOrder, fakes: list[PartyOrder], strength: Strength
) -> None:
    if genuine.is_open:
        left = genuine.leaves
        session.cancel(genuine)
        session.send(ABUSER, genuine.side, left, session.ask if genuine.side == 1 else session.bid)
    for fake in fakes:
        session.at(
            session.now_s + strength.delay_s * session.rng.uniform_between(0.5, 1.5),
            lambda fake=fake: session.cancel(fake),
        )


def _layering(session: TradingSession, strength: Strength) -> None:
    num = 3 if strength.size < 1.0 else 4 if strength.size < 2.0 else 6
    _episodes(session, strength.num_episodes, 60.0, lambda: _show_and_trade(session, strength, num))


def _spoofing(session: TradingSession, strength: Strength) -> None:
    _episodes(session, strength.num_episodes, 60.0, lambda: _show_and_trade(session, strength, 1))


def _wash_trades(session: TradingSession, strength: Strength) -> None:
    """With itself over two accounts; the weak ones with an accomplice, to and fro."""
    side = [1]

    def act() -> None:
        lots, price = max(2, round(12 * strength.size)), round(session.mid)
        other = ACCOMPLICE if strength.size < 1.0 else ABUSER
        first, second = (ABUSER, other) if side[0] == 1 else (other, ABUSER)
        side[0] = -side[0]
        # Inside the spread, where nobody else stands.
        buy = session.send(first, 1, lots, min(price, session.ask - 1), account=f"{first}-1")
        sell = session.send(second, -1, lots, max(price, session.bid + 1), account=f"{second}-2")
        if buy.is_open and sell.is_open:
            session.cross(buy, sell, min(buy.leaves, sell.leaves), price)

    _episodes(session, 2 * strength.num_episodes, 60.0, act)


def _ramping(session: TradingSession, strength: Strength) -> None:
    """Takes the offer again and again over minutes, and sells slowly afterwards."""

    def act() -> None:
        side = 1 if session.rng.chance(0.5) else -1
        num = 14
        for k in range(num):
            session.at(
                session.now_s + (14.0 + 4.0 * session.rng.uniform()) * k,
                lambda: _take(session, side, strength),
            )
        for k in range(num):
            session.at(session.now_s + 320.0 + 15.0 * k, lambda: _give(session, -side, strength))

    _episodes(session, 2 if strength.num_episodes < 10 else 3, 400.0, act)


def _take(session: TradingSession, side: int, strength: Strength) -> None:
    session.send(ABUSER, side, max(1, round(40 * strength.size)), session.ask if side == 1 else session.bid)


def _give(session: TradingSession, side: int, strength: Strength) -> None:
    order = session.send(
        ABUSER, side, max(1, round(25 * strength.size)), session.bid if side == 1 else session.ask
    )
    session.at(session.now_s + 12.0, lambda: session.cancel(order))


def _marking_the_close(session: TradingSession, strength: Strength) -> None:
    num = 5
    side = 1 if session.rng.chance(0.5) else -1
    for k in range(num):
        session.at(
            session.end_s - 60.0 + 55.0 * k / num,
            lambda: (
                session.send(
                    ABUSER, side, max(1, round(30 * strength.size)), session.ask if side == 1 else session.bid
                )
                and None
            ),
        )
    session.at(
        session.end_s + 100.0,
        lambda: session.send(ABUSER, side, max(1, round(60 * strength.size)), None, account="late") and None,
    )


def _momentum_ignition(session: TradingSession, strength: Strength) -> None:
    """A burst, a push of those who follow it, and the sale to them."""

    def act() -> None:
        side = 1 if session.rng.chance(0.5) else -1
        num = 6
        for k in range(num):
            session.at(
                session.now_s + 0.8 * (1.0 + strength.delay_s / 3.0) * k,
                lambda: (
                    session.send(
                        ABUSER,
                        side,
                        max(1, round(16 * strength.size)),
                        session.ask if side == 1 else session.bid,
                    )
                    and None
                ),
            )
        for k in range(6):
            session.at(session.now_s + 8.0 + 2.0 * k, lambda: session.push(side * 0.9 * strength.size))
        for k in range(4):
            session.at(
                session.now_s + 22.0 + 5.0 * k,
                lambda: (
                    session.send(
                        ABUSER,
                        -side,
                        max(1, round(22 * strength.size)),
                        session.bid if side == 1 else session.ask,
                    )
                    and None
                ),
            )

    _episodes(session, max(2, strength.num_episodes // 3), 300.0, act)


_PATTERNS: Mapping[AbusePattern, Callable[[TradingSession, Strength], None]] = {
    AbusePattern.LAYERING: _layering,
    AbusePattern.SPOOFING: _spoofing,
    AbusePattern.WASH_TRADES: _wash_trades,
    AbusePattern.RAMPING: _ramping,
    AbusePattern.MARKING_THE_CLOSE: _marking_the_close,
    AbusePattern.MOMENTUM_IGNITION: _momentum_ignition,
}
