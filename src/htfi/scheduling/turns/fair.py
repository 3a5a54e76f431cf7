"""Turns at a cloud's engine, fair among tenants: holds what each has used. The desk asks it, wiring makes it."""

from collections.abc import Iterable, Mapping, Sequence, Set

from htfi.scheduling.turns.accounts import Accounts, charged, lifted
from htfi.scheduling.turns.admission import retry_ms
from htfi.scheduling.turns.choice import Pace, Turn, next_joining, passes, reading_depth
from htfi.scheduling.turns.config import TurnsConfig
from htfi.scheduling.turns.doubt import Doubts, behind, weighed


class FairTurns:
    """Implements the desk's `Turns`."""

    def __init__(self, config: TurnsConfig | None = None) -> None:
        self.config = config or TurnsConfig()
        self.accounts: Accounts = {}
        self.doubts: Doubts = {}

    def retry_ms(
        self,
        own_ms: float,
        alone_ms: float,
        tenant: str,
        deadline_ms: float,
        backlog_ms: Mapping[str, float],
        num_waiting: Mapping[str, int],
    ) -> float | None:
        return retry_ms(own_ms, alone_ms, tenant, deadline_ms, backlog_ms, num_waiting, self.config)

    def next_joining(self, waiting: Sequence[Turn], writing: Sequence[Turn], pace: Pace) -> int | None:
        return next_joining(
            behind(self.accounts, self.doubts, self.config), waiting, writing, pace, self.config
        )

    def passes(self, ready: Sequence[Turn], pace: Pace) -> list[list[int]]:
        return passes(ready, pace, behind(self.accounts, self.doubts, self.config), self.config)

    def reading_depth(self, num_rows: int, num_offered: int, acceptance: float, pace: Pace) -> int:
        return reading_depth(num_rows, num_offered, acceptance, pace)

    def active(self, tenants: Set[str]) -> None:
        self.accounts = lifted(self.accounts, tenants)

    def suspect(self, doubts: Doubts) -> None:
        """Who is under suspicion from now on, and how far (0–1); others are not."""
        self.doubts = {tenant: doubt for tenant, doubt in doubts.items() if doubt > 0.0}

    def spent(self, costs: Iterable[tuple[str, float]]) -> None:
        self.accounts = charged(self.accounts, weighed(costs, self.doubts, self.config))
