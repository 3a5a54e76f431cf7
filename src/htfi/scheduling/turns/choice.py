"""Who joins next, which rows go in a pass together, and how many guesses are worth reading: pure functions.

`FairTurns` calls them. A pass costs a plane in rows and tokens, and is as wide as its widest row: rows of one guess
beside rows of twelve would be read as if they had twelve.
"""

from collections.abc import Sequence
from typing import Protocol

from htfi.scheduling.turns.accounts import Accounts
from htfi.scheduling.turns.config import TurnsConfig


class Turn(Protocol):
    """A request that wants the engine. `num_tokens`: of its prompt, or new ones in its row of the coming pass."""

    @property
    def key(self) -> int: ...
    @property
    def tenant(self) -> str: ...
    @property
    def slack_ms(self) -> float:
        """Until its deadline, less what it still takes if nobody joins."""
        ...

    @property
    def waited_ms(self) -> float: ...
    @property
    def num_tokens(self) -> int: ...


class Pace(Protocol):
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


def pass_ms(pace: Pace, rows: int, tokens: float) -> float:
    return pace.fixed_ms + pace.row_ms * rows + (pace.token_ms + pace.cell_ms * rows) * tokens


def urgency_ms(turn: Turn, config: TurnsConfig) -> float:
    """The smaller, the sooner. What is late already waits as the tolerant do: who can still be in time goes first."""
    patience = config.patience_ms
    slack = turn.slack_ms if 0.0 <= turn.slack_ms <= patience else patience
    return slack - config.aging * turn.waited_ms


def next_joining(
    accounts: Accounts,
    waiting: Sequence[Turn],
    writing: Sequence[Turn],
    pace: Pace,
    config: TurnsConfig,
) -> int | None:
    """The key of who joins next: of the tenants that have used least, the request with the least slack.

    None where reading its prompt now would make others late that are being written.
    """
    if not waiting:
        return None
    least = min(accounts.get(turn.tenant, 0.0) for turn in waiting)
    entitled = (turn for turn in waiting if accounts.get(turn.tenant, 0.0) <= least + config.grace_ms)
    first = min(entitled, key=lambda turn: (urgency_ms(turn, config), turn.key))
    return None if _must_wait(first, accounts, writing, pace, config) else first.key


def _must_wait(
    first: Turn, accounts: Accounts, writing: Sequence[Turn], pace: Pace, config: TurnsConfig
) -> bool:
    """Whether somebody would be late for it who has more right: less slack, and no more used of the engine.

    Nobody waits so for longer than `patience_ms`.
    """
    if first.waited_ms > config.patience_ms:
        return False
    reading_ms = pace.prompt_ms * first.num_tokens
    right_ms = accounts.get(first.tenant, 0.0) + config.grace_ms
    return any(
        0.0 <= turn.slack_ms < reading_ms
        and not 0.0 <= first.slack_ms < turn.slack_ms
        and accounts.get(turn.tenant, 0.0) <= right_ms
        for turn in writing
    )


def passes(ready: Sequence[Turn], pace: Pace, accounts: Accounts, config: TurnsConfig) -> list[list[int]]:
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
            (best[begin][0] + pass_ms(pace, end - begin, width), begin) for begin in [0, *ends] if begin < end
        )
    groups: list[list[Turn]] = []
    end = len(by_width)
    while end:
        begin = best[end][1]
        groups.append(by_width[begin:end])
        end = begin

    def rank(turn: Turn) -> tuple[float, float, int]:
        return accounts.get(turn.tenant, 0.0), urgency_ms(turn, config), turn.key

    ordered = [sorted(group, key=rank) for group in groups]
    ordered.sort(key=lambda group: rank(group[0]))
    size = config.max_rows
    return [
        [turn.key for turn in group[at : at + size]] for group in ordered for at in range(0, len(group), size)
    ]


def reading_depth(num_rows: int, num_offered: int, acceptance: float, pace: Pace) -> int:
    """How many of the guesses offered for a row to read in a pass of so many rows: most tokens for its ms.

    `acceptance` is the chance that a guess stands where those before it stood.
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
