"""What speculation did and what it cost, counted as it happens. The author keeps one; runs and services show it.

An alarm of its own for acceptance below its usual range: a draft that is stale, poisoned, or not the target's.

A CUSUM of log-likelihood ratios: rates shifted down against the usual ones, by kind and place, so that neither longer
drafts nor another mix of requests looks like a drop. Whoever keeps the evidence of rounds feeds it.
Sources: Page, Biometrika 41 (1954); its mean time to a false alarm is at least exp(threshold), Lorden, Annals of
Mathematical Statistics 42 (1971). Good and bad stretches scatter more than independent tokens do: ratios are divided
by the dispersion that blocks of rounds show.
"""

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from htfi.decoding.draft_length.acceptance_curve import AcceptanceCurves
from htfi.domain.errors import InvalidInput


@dataclass(slots=True)
class SpeculationCounts:
    """Counts since the author was made. Units: ms of one core.

    offered[d] are the rounds that drafted more than d chosen tokens, stood[d] those in which more than d of them
    stood; tokens that a form forces count as neither. `draft_ms` is what speculating took, and where the draft runs
    beside the target, what waiting for it took.
    """

    num_answers: int = 0
    num_tokens: int = 0
    num_passes: int = 0  # of the target, beyond the prompts', counted for each answer in it
    num_drafted_at: list[int] = field(default_factory=list[int])
    num_accepted_at: list[int] = field(default_factory=list[int])
    draft_ms: float = 0.0
    verify_ms: float = 0.0

    @property
    def acceptance(self) -> float:
        """Share of the drafted places that stood; 0 where nothing was drafted."""
        return sum(self.num_accepted_at) / sum(self.num_drafted_at) if self.num_drafted_at else 0.0

    def record_round(self, depth: int, num_stood: int) -> None:
        """One answer's part in a pass: chosen tokens drafted on its deepest branch, and how many stood."""
        self.num_passes += 1
        for counts, num in ((self.num_drafted_at, depth), (self.num_accepted_at, num_stood)):
            counts.extend([0] * (depth - len(counts)))
            for place in range(num):
                counts[place] += 1

    def record_time(self, draft_ms: float, verify_ms: float) -> None:
        self.draft_ms += draft_ms
        self.verify_ms += verify_ms

    def record_completion(self, num_tokens: int) -> None:
        self.num_answers += 1
        self.num_tokens += num_tokens


_BLOCK_ROUNDS = (16, 64)  # rounds over which dispersion is seen
_PRIOR_BLOCKS, _PRIOR_DISPERSION = 8.0, 2.5
_BLOCK_MEMORY = 200.0
_MAX_BLOCK_RATIO = 5.0  # no block counts more than as many times the usual
_TAIL_FACTOR = 1.5  # bad stretches are worse than good ones are good: found by simulation (tests)
_REFRESH_ROUNDS = 64


class AlarmChange(Enum):
    RAISED = "acceptance below its usual range"
    CLEARED = "acceptance back in its usual range"


@dataclass(frozen=True, slots=True)
class AcceptanceAlarmConfig:
    """`rounds_per_false_alarm`: at most one in as many rounds of usual acceptance. `shift`: in log-odds, the
    drop that is looked for, at least `least_drop`; drops below about half of it are left to `Survival`.
    `warm_rounds` of a kind teach what is usual, `memory_rounds` later ones follow slow change, by no more than `slack`
    in log-odds below what was first learnt, or poison in small doses would pass for usual."""

    rounds_per_false_alarm: float = 1e6
    shift: float = 1.0
    min_drop: float = 0.05
    warm_rounds: int = 200
    memory_rounds: float = 4000.0
    max_drift: float = 0.4
    max_places: int = 16

    def __post_init__(self) -> None:
        if not self.rounds_per_false_alarm >= 100.0 or not self.shift > 0.0 or not 0.0 <= self.min_drop < 0.5:
            raise InvalidInput(
                "acceptance alarm: rounds_per_false_alarm ≥ 100, shift > 0, least_drop in [0, 0.5)"
            )
        if self.warm_rounds < 16 or self.memory_rounds < self.warm_rounds or self.max_drift < 0.0:
            raise InvalidInput("acceptance alarm: 16 ≤ warm_rounds ≤ memory_rounds, slack ≥ 0")


class _PositionEvidence(NamedTuple):
    """The usual rate of a place and what an acceptance and a refusal say for a drop."""

    rate: float
    accepted: float
    refused: float


class AcceptanceAlarm:
    """Told of every row of every round; says when the alarm is raised and when it is cleared.

    While it is raised, or near to it, nothing is learnt of what is usual. A new draft begins anew: `rebase`.
    """

    def __init__(self, config: AcceptanceAlarmConfig | None = None) -> None:
        self.config = config or AcceptanceAlarmConfig()
        self._threshold = math.log(self.config.rounds_per_false_alarm)
        self._clear_threshold = self._threshold / 2.0
        self.reset()

    def reset(self) -> None:
        """Forget what was usual: another draft, or another target."""
        of = self.config
        self._usual = AcceptanceCurves(of.max_places, 0.8, 4.0, of.memory_rounds)
        self._num_seen: dict[str, int] = {}
        self._first: dict[str, list[float]] = {}  # rates as first learnt
        self._tables: dict[str, list[_PositionEvidence]] = {}
        self._blocks = [
            [0.0, 0.0, 0.0] for _ in _BLOCK_ROUNDS
        ]  # rounds, excess, variance of the block under way
        self._scatter = [[_PRIOR_BLOCKS * _PRIOR_DISPERSION, _PRIOR_BLOCKS] for _ in _BLOCK_ROUNDS]
        self.score = 0.0
        self.is_raised = False

    @property
    def dispersion(self) -> float:
        """Variance of acceptance over that of independent tokens, with something added for its long tail; ≥ 1."""
        found = max(found / num for found, num in self._scatter)
        return max(1.0, 1.0 + _TAIL_FACTOR * (found - 1.0))

    def learn(self, kind: str, drafted: int, accepted: int) -> AlarmChange | None:
        """One row of a round; what changed, if anything did."""
        drafted = min(drafted, self.config.max_places)
        if drafted < 1:
            return None
        accepted = min(max(accepted, 0), drafted)
        num_seen = self._num_seen.get(kind, 0)
        change = None
        if num_seen >= self.config.warm_rounds:
            change = self._update_score(kind, drafted, accepted)
        if not self.is_raised and self.score < self._threshold / 2.0:
            self._usual.learn(kind, drafted, accepted)
            self._num_seen[kind] = num_seen + 1
            if num_seen % _REFRESH_ROUNDS == 0:
                self._tables.pop(kind, None)
        return change

    def _update_score(self, kind: str, drafted: int, accepted: int) -> AlarmChange | None:
        table = self._tables.get(kind)
        if table is None:
            table = self._tables[kind] = self._table(kind)
        evidence = excess = variance = 0.0
        for place in table[:accepted]:
            evidence += place.accepted
            excess += 1.0 - place.rate
            variance += place.rate * (1.0 - place.rate)
        if accepted < drafted:
            place = table[accepted]
            evidence += place.refused
            excess -= place.rate
            variance += place.rate * (1.0 - place.rate)
        evidence /= self.dispersion
        if self.is_raised:
            self.score = max(0.0, self.score - evidence)
            if self.score <= self._clear_threshold:
                return None
            self.score, self.is_raised = 0.0, False
            return AlarmChange.CLEARED
        self.score = max(0.0, self.score + evidence)
        if self.score > self._threshold:
            self.score, self.is_raised = 0.0, True
            return AlarmChange.RAISED
        if self.score < self._threshold / 2.0:
            self._learn_dispersion(excess, variance)
        return None

    def _table(self, kind: str) -> list[_PositionEvidence]:
        rates = self._usual.rates(kind)
        first = self._first.setdefault(kind, rates)
        slack = self.config.max_drift
        return [
            self._position_evidence(max(now, _shifted(then, slack)))
            for now, then in zip(rates, first, strict=True)
        ]

    def _position_evidence(self, rate: float) -> _PositionEvidence:
        low = max(min(_shifted(rate, self.config.shift), rate - self.config.min_drop), rate / 8.0)
        return _PositionEvidence(rate, math.log(low / rate), math.log((1.0 - low) / (1.0 - rate)))

    def _learn_dispersion(self, excess: float, variance: float) -> None:
        for size, block, scatter in zip(_BLOCK_ROUNDS, self._blocks, self._scatter, strict=True):
            block[0] += 1.0
            block[1] += excess
            block[2] += variance
            if block[0] < size:
                continue
            # one wild block, the beginning of a drop perhaps, must not make the alarm deaf
            found = min(block[1] ** 2 / block[2], _MAX_BLOCK_RATIO * scatter[0] / scatter[1])
            keep = 1.0 - 1.0 / _BLOCK_MEMORY
            scatter[0], scatter[1] = scatter[0] * keep + found, scatter[1] * keep + 1.0
            block[:] = [0.0, 0.0, 0.0]

    def state(self) -> dict[str, Any]:
        """All that was learnt, for JSON."""
        return {
            "usual": self._usual.state(),
            "num_seen": dict(self._num_seen),
            "first": dict(self._first),
            "watched": {kind: [place.rate for place in table] for kind, table in self._tables.items()},
            "blocks": [list(block) for block in self._blocks],
            "scatter": [list(scatter) for scatter in self._scatter],
            "score": self.score,
            "is_raised": self.is_raised,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state()`. Raises InvalidInput where it is of another shape; the alarm then begins anew."""
        self.reset()
        try:
            self._usual.restore(state["usual"])
            self._num_seen = {str(kind): int(num) for kind, num in state["num_seen"].items()}
            self._first = {
                str(kind): [float(rate) for rate in rates] for kind, rates in state["first"].items()
            }
            self._blocks = [[float(each) for each in block] for block in state["blocks"]]
            self._scatter = [[float(each) for each in scatter] for scatter in state["scatter"]]
            self.score, self.is_raised = float(state["score"]), bool(state["is_raised"])
            watched = {str(kind): [float(rate) for rate in rates] for kind, rates in state["watched"].items()}
            self._tables = {
                kind: [self._position_evidence(rate) for rate in rates] for kind, rates in watched.items()
            }
            shapes = {len(self._blocks), len(self._scatter)}
            parts = [*map(len, self._blocks), *map(len, self._scatter)]
            if (
                shapes != {len(_BLOCK_ROUNDS)}
                or parts != [3] * len(_BLOCK_ROUNDS) + [2] * len(_BLOCK_ROUNDS)
                or any(len(of) != self.config.max_places for of in self._first.values())
            ):
                raise ValueError
        except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError, InvalidInput) as error:
            self.reset()
            raise InvalidInput(
                "acceptance alarm: the saved state is not one of its own; it begins anew"
            ) from error


def _shifted(rate: float, log_odds: float) -> float:
    """A rate so much lower in log-odds."""
    return rate / (rate + (1.0 - rate) * math.exp(log_odds))
