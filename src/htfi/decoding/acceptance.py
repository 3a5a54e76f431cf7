"""Acceptance of drafted tokens: counts of what speculation did, and an alarm when acceptance falls.

The alarm is a CUSUM of log-likelihood ratios of a downward shift, by request kind and draft position, so that neither
longer drafts nor another mix of requests looks like a drop. Sources: Page, Biometrika 41 (1954); its mean time to a
false alarm is at least exp(threshold), Lorden, Annals of Mathematical Statistics 42 (1971). Acceptance comes in good
and bad stretches, so ratios are divided by the dispersion that blocks of rounds show.
"""

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from htfi.decoding.draft_length.acceptance_curve import AcceptanceCurves
from htfi.domain.errors import InvalidInput


@dataclass(slots=True)
class SpeculationCounts:
    """Counts since the engine was built. Units: ms of one core.

    num_drafted_at[d] counts rounds that drafted more than d chosen tokens, num_accepted_at[d] those in which more than
    d of them were accepted; tokens that the grammar forces count as neither. `draft_ms` is the time spent drafting, or
    waiting for a draft in another process.
    """

    num_answers: int = 0
    num_tokens: int = 0
    num_passes: int = 0  # of the target after the prompt's, counted for each answer
    num_drafted_at: list[int] = field(default_factory=list[int])
    num_accepted_at: list[int] = field(default_factory=list[int])
    draft_ms: float = 0.0
    verify_ms: float = 0.0

    @property
    def num_drafted(self) -> int:
        return sum(self.num_drafted_at)

    @property
    def num_accepted(self) -> int:
        return sum(self.num_accepted_at)

    @property
    def acceptance(self) -> float:
        """Share of drafted tokens that were accepted; 0 if none was drafted."""
        return self.num_accepted / self.num_drafted if self.num_drafted_at else 0.0

    def record_round(self, depth: int, num_stood: int) -> None:
        """One answer's part in a pass: chosen tokens drafted on its deepest branch, and how many were accepted."""
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


_BLOCK_ROUNDS = (16, 64)  # rounds over which dispersion is measured
_PRIOR_BLOCKS, _PRIOR_DISPERSION = 8.0, 2.5
_BLOCK_MEMORY = 200.0
_MAX_BLOCK_RATIO = 5.0  # no block counts more than this multiple of the usual
_TAIL_FACTOR = 1.5  # bad stretches deviate further than good ones: found by simulation (tests)
_REFRESH_ROUNDS = 64


class AlarmChange(Enum):
    RAISED = "acceptance below its usual range"
    CLEARED = "acceptance back in its usual range"


@dataclass(frozen=True, slots=True)
class AcceptanceAlarmConfig:
    """`rounds_per_false_alarm`: rounds of usual acceptance between two false alarms, at least. `shift`: the drop to
    detect, in log-odds, at least `min_drop`; drops below about half of it are left to `AcceptanceCurves`. `warm_rounds`
    of a kind teach its usual acceptance, `memory_rounds` later ones follow slow change, by at most `max_drift` in
    log-odds below the first value: otherwise slow poisoning would count as usual.
    """

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
                "acceptance alarm: rounds_per_false_alarm ≥ 100, shift > 0, min_drop in [0, 0.5)"
            )
        if self.warm_rounds < 16 or self.memory_rounds < self.warm_rounds or self.max_drift < 0.0:
            raise InvalidInput("acceptance alarm: 16 ≤ warm_rounds ≤ memory_rounds, slack ≥ 0")


class _PositionEvidence(NamedTuple):
    """The usual acceptance rate of a position, and the log-likelihood ratios of an acceptance and of a rejection."""

    rate: float
    accepted: float
    refused: float


class AcceptanceAlarm:
    """Learns from every answer of every round; reports when the alarm is raised and when it is cleared.

    While it is raised, or nearly, it does not learn what is usual. Call `reset` when the draft or the target changes.
    """

    def __init__(self, config: AcceptanceAlarmConfig | None = None) -> None:
        self.config = config or AcceptanceAlarmConfig()
        self._threshold = math.log(self.config.rounds_per_false_alarm)
        self._clear_threshold = self._threshold / 2.0
        self.reset()

    def reset(self) -> None:
        """Forget what was usual: the draft or the target is another."""
        of = self.config
        self._usual = AcceptanceCurves(of.max_places, 0.8, 4.0, of.memory_rounds)
        self._num_seen: dict[str, int] = {}
        self._first: dict[str, list[float]] = {}  # first learnt rates
        self._tables: dict[str, list[_PositionEvidence]] = {}
        self._blocks = [
            [0.0, 0.0, 0.0] for _ in _BLOCK_ROUNDS
        ]  # rounds, excess, variance of the block under way
        self._scatter = [[_PRIOR_BLOCKS * _PRIOR_DISPERSION, _PRIOR_BLOCKS] for _ in _BLOCK_ROUNDS]
        self.score = 0.0
        self.is_raised = False

    @property
    def dispersion(self) -> float:
        """Variance of acceptance over that of independent tokens, with an allowance for its long tail; ≥ 1."""
        found = max(found / num for found, num in self._scatter)
        return max(1.0, 1.0 + _TAIL_FACTOR * (found - 1.0))

    def learn(self, kind: str, drafted: int, accepted: int) -> AlarmChange | None:
        """One answer's part in a round; the change of the alarm, if any."""
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
            # one extreme block, perhaps the beginning of a drop, must not desensitise the alarm
            found = min(block[1] ** 2 / block[2], _MAX_BLOCK_RATIO * scatter[0] / scatter[1])
            keep = 1.0 - 1.0 / _BLOCK_MEMORY
            scatter[0], scatter[1] = scatter[0] * keep + found, scatter[1] * keep + 1.0
            block[:] = [0.0, 0.0, 0.0]

    def state(self) -> dict[str, Any]:
        """Everything learnt, for JSON."""
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
        """Continue from `state()`. Raises InvalidInput if it has another shape; the alarm then starts empty."""
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
                "acceptance alarm: the saved state has another shape; the alarm starts empty"
            ) from error


def _shifted(rate: float, log_odds: float) -> float:
    """A rate lowered by `log_odds`."""
    return rate / (rate + (1.0 - rate) * math.exp(log_odds))
