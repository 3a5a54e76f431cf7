"""What the desk holds of one question: the case, which is answered once, and those who listen to its answer."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from htfi.decoding.job import Job
from htfi.decoding.link.frames import Lead, Open, Window, prefix_hash
from htfi.decoding.stem import Asked, Stem

GUIDED = (Lead.LOCKSTEP, Lead.FLIGHT)  # by an edge


@dataclass(slots=True, eq=False)
class Listener:
    """One edge's interest in a question: a handle on its stream. `case` is None until all parts are there.

    `awaited` are parts to come, `early` the windows that came before the case could be made. `num_sent` tokens
    were told under this epoch; `num_stood` is what came of guesses since then, −1 where none were read.
    """

    stream: str
    tenant: str
    asked: Open
    since_s: float
    case: "Case | None" = None
    awaited: set[bytes] = field(default_factory=set[bytes])
    early: list[Window] = field(default_factory=list[Window])
    num_sent: int = 0
    num_stood: int = -1
    num_bytes: int = 0
    is_stale_told: bool = False
    told_s: float = float("-inf")  # when it last heard of tokens
    due_s: float = 0.0  # when it is to hear of those that it has not heard of

    @property
    def handle(self) -> int:
        return self.asked.handle

    @property
    def epoch(self) -> int:
        return self.asked.epoch

    @property
    def is_spent(self) -> bool:
        """Whether its budget is used up; no budget is told by 0."""
        return 0 < self.asked.budget_bytes <= self.num_bytes

    def changed(self, asked: Open, now_s: float) -> None:
        """Go on under a higher epoch: what was told before may have been discarded, so all is told again."""
        self.asked, self.since_s = asked, now_s
        self.early.clear()
        self.num_sent, self.num_stood, self.is_stale_told = 0, -1, False


@dataclass(slots=True, eq=False)
class Case:
    """One question on its way to its answer, once, however many listen; the latest of them says who guesses.

    `was_served_s` is when it last had the engine. `is_patient`: in lock-step, whether it still waits for windows.
    """

    key: int
    name: bytes
    tenant: str
    job: Job
    since_s: float
    deadline_s: float
    was_served_s: float
    listeners: list[Listener] = field(default_factory=list[Listener])
    lead: Lead = Lead.PLAIN
    is_patient: bool = True
    num_drafted: int = 0  # in the latest pass
    num_read_ahead: int = 0  # of its prompt, into the cache
    hashed: int = 0  # of all settled tokens
    num_hashed: int = 0
    doubt: float = 0.0  # 0–1, as its first listener told

    @classmethod
    def of(cls, key: int, listener: Listener, asked: Asked, now_s: float) -> "Case":
        job = Job(key, Stem(asked, list(asked.head), asked.state))
        deadline_s = now_s + listener.asked.deadline_ms / 1e3
        doubt = min(max(listener.asked.doubt, 0), 1000) / 1e3
        return cls(key, listener.asked.request, listener.tenant, job, now_s, deadline_s, now_s, doubt=doubt)

    @property
    def stem(self) -> Stem:
        return self.job.stem

    @property
    def in_full(self) -> bool:
        """Whether the target answers it in full precision."""
        return self.stem.asked.request.in_full

    @property
    def kind(self) -> str:
        return self.stem.asked.request.kind

    @property
    def num_to_read(self) -> int:
        """Tokens of its prompt that are still to be read."""
        asked = self.stem.asked
        return len(asked.prompt) + len(asked.head) - self.num_read_ahead

    def prefix(self) -> int:
        """The hash of all that is settled."""
        tokens = self.stem.tokens
        if self.num_hashed < len(tokens):
            self.hashed = prefix_hash(tokens[self.num_hashed :], self.hashed)
            self.num_hashed = len(tokens)
        return self.hashed

    def wanted_lead(self, has_draft: bool) -> Lead:
        """Who is to guess: as the latest listener says, unless it can pay for no more, or is gone."""
        here = Lead.CLOUD if has_draft else Lead.PLAIN
        for listener in reversed(self.listeners):
            lead = Lead(listener.asked.lead)
            if lead not in GUIDED:
                return here if lead is Lead.CLOUD else Lead.PLAIN
            return here if listener.is_spent else lead
        return here


def tokens_left(case: Case, expected: float) -> float:
    """How many tokens are likely to come, at least one, of an answer that is expected to have so many."""
    return max(expected - len(case.stem.tokens), 1.0)


def doubts(cases: Sequence[Case]) -> dict[str, float]:
    """How far the work of each tenant is in doubt, 0–1: the mean over its cases; those beyond doubt are left out."""
    if not any(case.doubt for case in cases):
        return {}
    told: dict[str, list[float]] = {}
    for case in cases:
        told.setdefault(case.tenant, []).append(case.doubt)
    return {tenant: mean for tenant, all_of in told.items() if (mean := sum(all_of) / len(all_of)) > 0.0}


def tenants(cases: Sequence[Case]) -> frozenset[str]:
    return frozenset(case.tenant for case in cases)
