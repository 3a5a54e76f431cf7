"""Work on behalf of who is under suspicion goes behind others', and is never shut out: pure functions.

`FairTurns` calls the first two for tenants of a cloud's engine, the order of readings the third for a moment's series.
Doubt runs 0–1, 1 where manipulation is suspected.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from htfi.scheduling.turns.accounts import Accounts
from htfi.scheduling.turns.config import TurnsConfig

Doubts = Mapping[str, float]


class Reading(NamedTuple):
    """A series whose news wait to be read: its place, whether something was read of them, since when nothing was."""

    place: int
    begun: bool
    read_ns: int
    doubt: float = 0.0


def weighed(
    costs: Iterable[tuple[str, float]], doubts: Doubts, config: TurnsConfig
) -> Iterator[tuple[str, float]]:
    """What tenants used, as it counts: one wholly in doubt is charged so that it has `doubted_share` of another's."""
    dearer = 1.0 / config.doubted_share - 1.0
    for tenant, ms in costs:
        yield tenant, ms * (1.0 + dearer * _bounded(doubts.get(tenant, 0.0)))


def behind(accounts: Accounts, doubts: Doubts, config: TurnsConfig) -> Accounts:
    """Accounts by which turns are given: those in doubt as if they had used up to `doubted_ms` more."""
    if not doubts:
        return accounts
    return {
        **accounts,
        **{
            tenant: accounts.get(tenant, 0.0) + config.doubted_ms * _bounded(doubt)
            for tenant, doubt in doubts.items()
        },
    }


def reading_order(waiting: Iterable[Reading], now_ns: int, patience: float = 4.0) -> list[int]:
    """Places in the order in which their news are read: what nobody has read first, of those what has waited longest.

    One in doubt counts as having waited less, down to 1/`patience` of its time: it goes behind who waits as long, and
    comes first in the end.
    """

    def rank(one: Reading) -> tuple[bool, float, int]:
        waited = max(now_ns - one.read_ns, 0)
        return one.begun, -waited / (1.0 + (patience - 1.0) * _bounded(one.doubt)), one.place

    return [one.place for one in sorted(waiting, key=rank)]


def _bounded(doubt: float) -> float:
    return min(max(doubt, 0.0), 1.0)
