"""What the desk needs from outside: whose turn it is. Wiring introduces scheduling's; the desk tells it what runs."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple, Protocol


class Pace(NamedTuple):
    """What the engine takes: a pass of r rows and t tokens each fixed_ms + row_ms · r + token_ms · t + cell_ms · r · t,
    a prompt prompt_ms a token, a draft draft_ms a token."""

    fixed_ms: float
    row_ms: float
    token_ms: float
    cell_ms: float
    prompt_ms: float
    draft_ms: float

    def pass_ms(self, rows: int, tokens: float) -> float:
        return self.fixed_ms + self.row_ms * rows + (self.token_ms + self.cell_ms * rows) * tokens


class Turn(NamedTuple):
    """A request that wants the engine. `num_tokens`: of its prompt, or new ones in its row of the coming pass.

    `slack_ms`: until its deadline, less what it still takes if nobody joins.
    """

    key: int
    tenant: str
    slack_ms: float
    waited_ms: float
    num_tokens: int


class Turns(Protocol):
    """Decides who is admitted, who joins and who goes together, and remembers what each tenant used."""

    def retry_ms(
        self,
        own_ms: float,
        alone_ms: float,
        tenant: str,
        deadline_ms: float,
        backlog_ms: Mapping[str, float],
        num_waiting: Mapping[str, int],
    ) -> float | None:
        """None admits a request that needs `own_ms` of the engine and takes `alone_ms` if it never waits; else when
        to ask again. `backlog_ms` and `num_waiting` are what tenants have here already."""
        ...

    def next_joining(self, waiting: Sequence[Turn], writing: Sequence[Turn], pace: Pace) -> int | None:
        """The key of the request whose prompt is read next; None where it is better to write on first."""
        ...

    def passes(self, ready: Sequence[Turn], pace: Pace) -> list[list[int]]:
        """All that are ready, by key, in the passes in which they go, in order."""
        ...

    def reading_depth(self, num_rows: int, num_offered: int, acceptance: float, pace: Pace) -> int:
        """How many of the guesses offered for a row to read in a pass of so many rows."""
        ...

    def suspect(self, doubts: Mapping[str, float]) -> None:
        """How far the work of tenants is in doubt from now on, 0–1; that of others is not."""
        ...

    def active(self, tenants: Set[str]) -> None:
        """Who has requests here now."""
        ...

    def spent(self, costs: Iterable[tuple[str, float]]) -> None:
        """What tenants used, in ms of the engine."""
        ...
