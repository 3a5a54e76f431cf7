"""Fair scheduling of a cloud's engine among tenants. `FairScheduler` keeps their usage and calls pure functions.

Usage: a virtual counter for each tenant, in ms of the engine's time (Sheng et al., "Fairness in serving large language
models", arXiv 2401.00588). A tenant that was idle begins at the smallest counter of the active ones, so that it neither
saves up rights while away nor owes for what others used.

Admission: a request that would miss its deadline is refused at once, with the time after which to retry.

Passes: a pass costs a plane in rows and tokens, and is as wide as its widest row, so rows of similar width go together.

Suspicion, 0–1: work on behalf of suspects goes behind that of others, and is never shut out. `reading_order` applies
the same rule to the series of a decision point.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple, Protocol

from htfi.scheduling.config import (
    AGING,
    GRACE_MS,
    MAX_RETRY_MS,
    MIN_RETRY_MS,
    SAFETY,
    SUSPECTED_DELAY_MS,
    SUSPECTED_SHARE,
    TurnsConfig,
)

UsageCounters = Mapping[str, float]


def charge_usage(accounts: UsageCounters, costs: Iterable[tuple[str, float]]) -> UsageCounters:
    """Accounts after tenants used so many ms."""
    after = dict(accounts)
    for tenant, ms in costs:
        after[tenant] = after.get(tenant, 0.0) + ms
    return after


def lift_idle_counters(accounts: UsageCounters, active: Set[str]) -> UsageCounters:
    """Accounts of those that are active; who is idle is remembered only for what it used beyond the others."""
    used = [accounts[tenant] for tenant in active if tenant in accounts]
    if not used:
        return dict.fromkeys(active, 0.0)
    lowest = min(used)
    after = {tenant: ms for tenant, ms in accounts.items() if tenant in active or ms > lowest}
    for tenant in active:
        after.setdefault(tenant, lowest)
    return after


def predicted_finish_ms(
    own_ms: float, alone_ms: float, tenant: str, backlog_ms: Mapping[str, float]
) -> float:
    """When a request would be whole, from now, with tenants sharing the engine evenly.

    `own_ms` of the engine's time it needs, and `alone_ms` pass until it is whole even if it never waits, because
    one pass follows the other. `backlog_ms` is what each tenant has left, this request not counted. A tenant whose
    backlog is smaller than ours is done before us; a larger one takes as much as we do meanwhile.
    """
    ours = backlog_ms.get(tenant, 0.0) + own_ms
    shared = sum(min(theirs, ours) for other, theirs in backlog_ms.items() if other != tenant)
    return max(ours + shared, alone_ms)


def admission_retry_ms(
    own_ms: float,
    alone_ms: float,
    tenant: str,
    deadline_ms: float,
    backlog_ms: Mapping[str, float],
    num_waiting: Mapping[str, int],
    config: TurnsConfig,
) -> float | None:
    """None to admit it; else when to ask again: the queue is full, or the answer would come after its deadline."""
    backlog = sum(backlog_ms.values())
    if num_waiting.get(tenant, 0) >= config.max_waiting_per_tenant:
        return _bounded_retry_ms(backlog_ms.get(tenant, 0.0) / 2.0)
    if sum(num_waiting.values()) >= config.max_waiting:
        return _bounded_retry_ms(backlog / 2.0)
    late_ms = predicted_finish_ms(own_ms, alone_ms, tenant, backlog_ms) * SAFETY - deadline_ms
    return None if late_ms <= 0.0 else _bounded_retry_ms(late_ms)


def _bounded_retry_ms(ms: float) -> float:
    return min(max(ms, MIN_RETRY_MS), MAX_RETRY_MS)


class EngineTurn(Protocol):
    """A request that wants the engine. `num_tokens`: of its prompt, or new ones in its row of the coming pass."""

    @property
    def key(self) -> int: ...
    @property
    def tenant(self) -> str: ...
    @property
    def slack_ms(self) -> float:
        """Until its deadline, less what it still takes if no other request joins."""
        ...

    @property
    def waited_ms(self) -> float: ...
    @property
    def num_tokens(self) -> int: ...


class EngineCostModel(Protocol):
    """What the engine takes, as measured: a pass of r rows and t tokens each is
    fixed_ms + row_ms · r + token_ms · t + cell_ms · r · t; a prompt prompt_ms a token."""

    @property
    def fixed_ms(self) -> float: ...
    @property
    def row_ms(self) -> float: ...
    @property
    def token_ms(self) -> float: ...
    @property
    def cell_ms(self) -> float: ...
    @property
    def prompt_ms(self) -> float: ...


def predicted_pass_ms(pace: EngineCostModel, rows: int, tokens: float) -> float:
    return pace.fixed_ms + pace.row_ms * rows + (pace.token_ms + pace.cell_ms * rows) * tokens


def urgency_ms(turn: EngineTurn, config: TurnsConfig) -> float:
    """The smaller, the sooner. What is late already waits as the tolerant do: who can still be in time goes first."""
    patience = config.patience_ms
    slack = turn.slack_ms if 0.0 <= turn.slack_ms <= patience else patience
    return slack - AGING * turn.waited_ms


def choose_next_request(
    accounts: UsageCounters,
    waiting: Sequence[EngineTurn],
    writing: Sequence[EngineTurn],
    pace: EngineCostModel,
    config: TurnsConfig,
) -> int | None:
    """The key of who joins next: of the tenants that have used least, the request with the least slack.

    None where reading its prompt now would make others late that are being written.
    """
    if not waiting:
        return None
    lowest = min(accounts.get(turn.tenant, 0.0) for turn in waiting)
    entitled = (turn for turn in waiting if accounts.get(turn.tenant, 0.0) <= lowest + GRACE_MS)
    first = min(entitled, key=lambda turn: (urgency_ms(turn, config), turn.key))
    return None if _would_delay_others(first, accounts, writing, pace, config) else first.key


def _would_delay_others(
    first: EngineTurn,
    accounts: UsageCounters,
    writing: Sequence[EngineTurn],
    pace: EngineCostModel,
    config: TurnsConfig,
) -> bool:
    """Whether it would make a request late that has more right: less slack, and no more use of the engine.

    No request waits so for longer than `patience_ms`.
    """
    if first.waited_ms > config.patience_ms:
        return False
    reading_ms = pace.prompt_ms * first.num_tokens
    right_ms = accounts.get(first.tenant, 0.0) + GRACE_MS
    return any(
        0.0 <= turn.slack_ms < reading_ms
        and not 0.0 <= first.slack_ms < turn.slack_ms
        and accounts.get(turn.tenant, 0.0) <= right_ms
        for turn in writing
    )


def group_into_passes(
    ready: Sequence[EngineTurn], pace: EngineCostModel, accounts: UsageCounters, config: TurnsConfig
) -> list[list[int]]:
    """All that are ready, in the passes that take least in sum, the most urgent first; each row goes once."""
    if not ready:
        return []
    by_width = sorted(ready, key=lambda turn: turn.num_tokens)
    ends = [
        at
        for at in range(1, len(by_width) + 1)
        if at == len(by_width) or by_width[at].num_tokens > by_width[at - 1].num_tokens
    ]
    # best[e]: the least time for the e narrowest rows, and where its last pass begins.
    best: dict[int, tuple[float, int]] = {0: (0.0, 0)}
    for end in ends:
        width = by_width[end - 1].num_tokens
        best[end] = min(
            (best[begin][0] + predicted_pass_ms(pace, end - begin, width), begin)
            for begin in [0, *ends]
            if begin < end
        )
    groups: list[list[EngineTurn]] = []
    end = len(by_width)
    while end:
        begin = best[end][1]
        groups.append(by_width[begin:end])
        end = begin

    def rank(turn: EngineTurn) -> tuple[float, float, int]:
        return accounts.get(turn.tenant, 0.0), urgency_ms(turn, config), turn.key

    ordered = [sorted(group, key=rank) for group in groups]
    ordered.sort(key=lambda group: rank(group[0]))
    size = config.max_rows
    return [
        [turn.key for turn in group[at : at + size]] for group in ordered for at in range(0, len(group), size)
    ]


def best_verify_depth(num_rows: int, num_offered: int, acceptance: float, pace: EngineCostModel) -> int:
    """How many of the guesses offered for a row to read in a pass of so many rows: most tokens for its ms.

    `acceptance` is the chance that a guess is accepted where those before it were.
    """
    rows = max(num_rows, 1)
    base_ms = pace.fixed_ms / rows + pace.row_ms
    each_ms = pace.token_ms / rows + pace.cell_ms
    tokens, chance = 1.0, 1.0
    best, best_rate = 0, 1.0 / max(base_ms + each_ms, 1e-9)
    for depth in range(1, num_offered + 1):
        chance *= acceptance
        tokens += chance
        rate = tokens / max(base_ms + each_ms * (depth + 1), 1e-9)
        if rate >= best_rate:
            best, best_rate = depth, rate
    return best


SuspicionLevels = Mapping[str, float]


class PendingReading(NamedTuple):
    """A series whose news wait to be read: its place, whether something was read of them, since when nothing was."""

    place: int
    was_read: bool
    read_ns: int
    suspicion: float = 0.0


def charge_with_suspicion(
    costs: Iterable[tuple[str, float]], suspicions: SuspicionLevels
) -> Iterator[tuple[str, float]]:
    """What tenants used, as it counts: one under full suspicion is charged so that its share is `SUSPECTED_SHARE`."""
    dearer = 1.0 / SUSPECTED_SHARE - 1.0
    for tenant, ms in costs:
        yield tenant, ms * (1.0 + dearer * _clamp_share(suspicions.get(tenant, 0.0)))


def penalise_suspects(accounts: UsageCounters, suspicions: SuspicionLevels) -> UsageCounters:
    """Counters by which turns are given: suspects count as if they had used up to `SUSPECTED_DELAY_MS` more."""
    if not suspicions:
        return accounts
    return {
        **accounts,
        **{
            tenant: accounts.get(tenant, 0.0) + SUSPECTED_DELAY_MS * _clamp_share(suspicion)
            for tenant, suspicion in suspicions.items()
        },
    }


def reading_order(waiting: Iterable[PendingReading], now_ns: int, patience: float = 4.0) -> list[int]:
    """Places in the order in which their news is read: unread news first, of that what has waited longest.

    A suspect counts as having waited less, down to 1/`patience` of its time: it goes behind what waited as long, and
    still comes first in the end.
    """

    def rank(reading: PendingReading) -> tuple[bool, float, int]:
        waited = max(now_ns - reading.read_ns, 0)
        return (
            reading.was_read,
            -waited / (1.0 + (patience - 1.0) * _clamp_share(reading.suspicion)),
            reading.place,
        )

    return [reading.place for reading in sorted(waiting, key=rank)]


def _clamp_share(suspicion: float) -> float:
    return min(max(suspicion, 0.0), 1.0)


class FairScheduler:
    """Implements decoding's protocol for the turns at a cloud's engine."""

    def __init__(self, config: TurnsConfig | None = None) -> None:
        self.config = config or TurnsConfig()
        self.usage: UsageCounters = {}
        self.suspicions: SuspicionLevels = {}

    def retry_ms(
        self,
        own_ms: float,
        alone_ms: float,
        tenant: str,
        deadline_ms: float,
        backlog_ms: Mapping[str, float],
        num_waiting: Mapping[str, int],
    ) -> float | None:
        return admission_retry_ms(own_ms, alone_ms, tenant, deadline_ms, backlog_ms, num_waiting, self.config)

    def next_joining(
        self, waiting: Sequence[EngineTurn], writing: Sequence[EngineTurn], pace: EngineCostModel
    ) -> int | None:
        return choose_next_request(
            penalise_suspects(self.usage, self.suspicions), waiting, writing, pace, self.config
        )

    def passes(self, ready: Sequence[EngineTurn], pace: EngineCostModel) -> list[list[int]]:
        return group_into_passes(ready, pace, penalise_suspects(self.usage, self.suspicions), self.config)

    def reading_depth(self, num_rows: int, num_offered: int, acceptance: float, pace: EngineCostModel) -> int:
        return best_verify_depth(num_rows, num_offered, acceptance, pace)

    def active(self, tenants: Set[str]) -> None:
        self.usage = lift_idle_counters(self.usage, tenants)

    def suspect(self, suspicions: SuspicionLevels) -> None:
        """The tenants under suspicion from now on, and how far (0–1)."""
        self.suspicions = {tenant: suspicion for tenant, suspicion in suspicions.items() if suspicion > 0.0}

    def spent(self, costs: Iterable[tuple[str, float]]) -> None:
        self.usage = charge_usage(self.usage, charge_with_suspicion(costs, self.suspicions))
