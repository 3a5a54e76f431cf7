"""How fast a cloud's engine is, measured as it works: for predictions here and for heartbeats to peers."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from htfi.decoding.draft_length.pass_costs import TARGET_PRIOR, LearnedPassCosts, PassCostPlane
from htfi.decoding.draft_length.planner import DraftLengthPlanner, LengthRequest, RoundReport
from htfi.decoding.link.ports import EngineSpeed
from htfi.decoding.link.server.remote_drafts import RoutedStrategy

_CORNERS = ((1, 1), (1, 8), (16, 1), (16, 8))  # passes from which the plane is computed
_RECENT = 256
_DECAY = 0.95  # of earlier data, at each new measurement
_PRIOR_WEIGHT = 20.0
_ACCEPTANCE = 0.9  # of guesses, without data
_EXPECTED_SHARE = 0.7  # of its longest answer that a request is expected to write, without data


class _Ratio:
    """A ratio of two fading sums."""

    def __init__(self, prior: float, weight: float) -> None:
        self._above, self._below = prior * weight, weight

    def learn(self, above: float, below: float) -> None:
        self._above = _DECAY * self._above + above
        self._below = _DECAY * self._below + below

    @property
    def value(self) -> float:
        return self._above / self._below


class LatencyQuantiles(NamedTuple):
    p50_ms: float
    p95_ms: float


class EngineMeasurements:
    """Costs of passes, prompts and guesses, from `MeasuredPlanner` and the scheduler."""

    def __init__(
        self, prior: PassCostPlane = TARGET_PRIOR, prompt_ms: float = 0.1, draft_ms: float = 0.03
    ) -> None:
        self.costs = LearnedPassCosts(prior)
        self._recent_ms: deque[float] = deque(maxlen=_RECENT)
        self._prompt_ms = _Ratio(prompt_ms, 32.0)
        self._draft_ms = _Ratio(draft_ms, 16.0)
        self._reused = _Ratio(0.0, 1.0)
        self._shares: dict[str, _Ratio] = {}
        self._stood: dict[str, _Ratio] = {}
        self._pace: EngineSpeed | None = None

    def record_pass(self, rows: int, tokens: int, ms: float) -> None:
        self.costs.learn(rows, tokens, ms)
        self._recent_ms.append(ms)
        self._pace = None

    def record_prefill(self, num_tokens: int, num_reused: int, ms: float) -> None:
        """A prompt, of which `num_reused` tokens were cached."""
        if num_tokens > num_reused:
            self._prompt_ms.learn(ms, num_tokens - num_reused)
        self._reused.learn(num_reused, num_tokens)
        self._pace = None

    def record_draft(self, num_tokens: int, ms: float) -> None:
        if num_tokens:
            self._draft_ms.learn(ms, num_tokens)
            self._pace = None

    def record_guesses(self, kind: str, num_read: int, num_stood: int) -> None:
        """Of a window's guesses `num_read` were read and `num_stood` accepted."""
        tried = min(num_read, num_stood + 1)
        if tried:
            self._of(self._stood, kind, _ACCEPTANCE).learn(num_stood, tried)

    def record_completion(self, kind: str, num_tokens: int, longest: int) -> None:
        self._of(self._shares, kind, _EXPECTED_SHARE).learn(num_tokens, max(longest, 1))

    def acceptance(self, kind: str) -> float:
        """The chance that a guess is accepted if those before it were."""
        return min(self._of(self._stood, kind, _ACCEPTANCE).value, 0.999)

    def expected_tokens(self, kind: str, longest: int) -> float:
        return self._of(self._shares, kind, _EXPECTED_SHARE).value * longest

    def read_ms(self, num_prompt: int) -> float:
        """The expected time of a prompt, part of which is cached."""
        return self.pace.prompt_ms * num_prompt * (1.0 - min(self._reused.value, 0.9))

    @property
    def pace(self) -> EngineSpeed:
        if self._pace is None:
            one, wide, many, both = (self.costs.estimate(rows, tokens) for rows, tokens in _CORNERS)
            cell = max((both - many - wide + one) / (15.0 * 7.0), 0.0)
            token = max((wide - one) / 7.0 - cell, 0.0)
            row = max((many - one) / 15.0 - cell, 0.0)
            fixed = max(one - row - token - cell, 1e-3)
            self._pace = EngineSpeed(fixed, row, token, cell, self._prompt_ms.value, self._draft_ms.value)
        return self._pace

    @property
    def steps(self) -> LatencyQuantiles:
        """Of the latest passes."""
        ms = sorted(self._recent_ms)
        if not ms:
            return LatencyQuantiles(0.0, 0.0)
        return LatencyQuantiles(ms[len(ms) // 2], ms[min(int(0.95 * len(ms)), len(ms) - 1)])

    def _of(self, ratios: dict[str, _Ratio], kind: str, prior: float) -> _Ratio:
        ratio = ratios.get(kind)
        if ratio is None:
            if len(ratios) >= _RECENT:  # kinds come from peers
                ratios.clear()
            ratio = ratios[kind] = _Ratio(prior, _PRIOR_WEIGHT)
        return ratio


class MeasuredPlanner:
    """Implements `DraftLengthPlanner` with another, and measures passes. The planner learns only from guesses of its
    own draft: windows of an edge cost no drafting here.
    """

    def __init__(
        self, inner: DraftLengthPlanner, measured: EngineMeasurements, routed: RoutedStrategy
    ) -> None:
        self.name = inner.name
        self._inner = inner
        self._measured = measured
        self._routed = routed

    def plan(self, requests: Sequence[LengthRequest]) -> list[int]:
        return self._inner.plan(requests)

    def learn(self, rounds: Sequence[RoundReport]) -> None:
        if not rounds:
            return
        self._measured.record_pass(rounds[0].rows, rounds[0].tokens, rounds[0].verify_ms)
        led = [of_row for of_row, is_led in zip(rounds, self._routed.led, strict=False) if is_led]
        if led:
            self._inner.learn(led)
