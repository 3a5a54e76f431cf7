"""Live figures of links, clouds, this machine and kinds of request, from samples; and quantiles that drift and jump."""

import math
from bisect import bisect_left, insort
from collections import deque
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from htfi.scheduling.config import HALF_LIFE_S, NUM_SAMPLES
from htfi.scheduling.placement.figures import CloudFigures, EdgeFigures, LinkFigures, PassCostModel

_SHIFT_SAMPLES = (
    3  # samples in a row beyond all that is usual: the level has shifted, and older samples are dropped
)
_SHIFT_SLACK = 0.25  # of the median: what lies nearer is not a change
_MIN_SHIFT_SLACK = 0.5
_USUAL_RANGE = (0.05, 0.95)


class RecentQuantiles:
    """Quantiles of the latest samples; one that is `half_life_s` older weighs half.

    A jump is followed within three samples: when so many in a row lie beyond what was usual, and on one side, the
    older ones are forgotten and `num_shifts` rises. Samples that are not finite or negative are passed over.
    """

    __slots__ = ("_half_life_s", "_ordered", "_samples", "_weighed", "num_shifts")

    def __init__(self, num_samples: int = 64, half_life_s: float = 5.0) -> None:
        self._samples: deque[tuple[float, float]] = deque(maxlen=num_samples)  # value, time
        self._ordered: list[tuple[float, float]] = []  # value, time
        self._half_life_s = half_life_s
        self._weighed: tuple[list[float], list[float]] | None = (
            None  # values, and weights up to and with each
        )
        self.num_shifts = 0

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, value: float, at_s: float) -> None:
        if not 0.0 <= value < math.inf:
            return
        if len(self._samples) == self._samples.maxlen:
            del self._ordered[bisect_left(self._ordered, self._samples[0])]
        self._samples.append((value, at_s))
        insort(self._ordered, (value, at_s))
        self._weighed = None
        if len(self._samples) > _SHIFT_SAMPLES and self._has_jumped():
            for _ in range(len(self._samples) - _SHIFT_SAMPLES):
                self._samples.popleft()
            self._ordered = sorted(self._samples)
            self.num_shifts += 1

    def quantile(self, q: float) -> float | None:
        """The smallest value with at least a share `q` of the weight at or below it; None before the first sample."""
        if not self._samples:
            return None
        if self._weighed is None:
            self._weighed = _cumulative_weights(self._ordered, self._half_life_s)
        return _weighted_quantile(self._weighed, q)

    def _has_jumped(self) -> bool:
        samples = self._samples
        newest = [samples[-place][0] for place in range(1, _SHIFT_SAMPLES + 1)]
        low, high, other = min(newest), max(newest), samples[-_SHIFT_SAMPLES - 1][0]
        if low <= other <= high:
            return False  # like the one before them: no need to look further
        before = _cumulative_weights(sorted(list(samples)[:-_SHIFT_SAMPLES]), self._half_life_s)
        slack = max(_SHIFT_SLACK * _weighted_quantile(before, 0.5), _MIN_SHIFT_SLACK)
        return (
            low > _weighted_quantile(before, _USUAL_RANGE[1]) + slack
            or high < _weighted_quantile(before, _USUAL_RANGE[0]) - slack
        )


def _cumulative_weights(
    ordered: list[tuple[float, float]], half_life_s: float
) -> tuple[list[float], list[float]]:
    newest_s = max([at for _, at in ordered])
    weights = [0.5 ** ((newest_s - at) / half_life_s) for _, at in ordered]
    return [value for value, _ in ordered], list(accumulate(weights))


def _weighted_quantile(weighed: tuple[list[float], list[float]], q: float) -> float:
    values, reached = weighed
    return values[min(bisect_left(reached, q * reached[-1] - 1e-12), len(values) - 1)]


_P95 = 0.95
_MIN_SAMPLES = 3  # samples from which on a figure is read from them


class CloudReport(NamedTuple):
    """What a cloud reports of itself. None: unchanged. `step_ms`: a pass with one new token for each of its rows."""

    queue_ms: float | None = None
    rows_busy: float | None = None
    step_ms: float | None = None
    pass_costs: PassCostModel | None = None
    prompt_ms: float | None = None  # a token
    draft_ms: float | None = None  # a token; below 0: it has no draft
    watts: float | None = None
    residency: frozenset[str] | None = None
    num_in_flight: int | None = None
    is_degraded: bool | None = None


class LinkEstimator:
    """A link's figures; None until its RTT was seen."""

    def __init__(self) -> None:
        self._rtt = RecentQuantiles(NUM_SAMPLES, HALF_LIFE_S)
        self._bytes_per_s = RecentQuantiles(NUM_SAMPLES, HALF_LIFE_S * 4)
        self._loss = 0.0
        self._is_suspect = False

    def sample(
        self,
        at_s: float,
        rtt_ms: float | None = None,
        bytes_per_s: float | None = None,
        loss: float | None = None,
        is_suspect: bool | None = None,
    ) -> None:
        if rtt_ms is not None:
            self._rtt.add(rtt_ms, at_s)
        if bytes_per_s is not None and bytes_per_s > 0.0:
            self._bytes_per_s.add(bytes_per_s, at_s)
        if loss is not None and math.isfinite(loss):
            self._loss = min(max(loss, 0.0), 1.0)
        if is_suspect is not None:
            self._is_suspect = is_suspect

    @property
    def num_shifts(self) -> int:
        return self._rtt.num_shifts

    def figures(self) -> LinkFigures | None:
        rtt, late = self._rtt.quantile(0.5), self._rtt.quantile(_P95)
        if rtt is None or late is None:
            return None
        wide = self._bytes_per_s.quantile(0.5)
        return LinkFigures(rtt, late, wide, self._loss, self._is_suspect)


class CloudEstimator:
    """A cloud's figures, from a prior on."""

    def __init__(self, prior: CloudFigures) -> None:
        self._now = prior
        self._queue = RecentQuantiles(NUM_SAMPLES, HALF_LIFE_S)
        self._pace = RecentQuantiles(NUM_SAMPLES, HALF_LIFE_S)

    def report(self, at_s: float, report: CloudReport) -> None:
        now = self._now
        if report.pass_costs is not None:
            now = now._replace(pass_costs=report.pass_costs)
        if report.rows_busy is not None and 0.0 <= report.rows_busy < math.inf:
            now = now._replace(rows_busy=report.rows_busy)
        if report.prompt_ms is not None and 0.0 <= report.prompt_ms < math.inf:
            now = now._replace(prompt_ms=report.prompt_ms)
        if report.draft_ms is not None and math.isfinite(report.draft_ms):
            now = now._replace(draft_ms=report.draft_ms if report.draft_ms >= 0.0 else None)
        if report.watts is not None and 0.0 <= report.watts < math.inf:
            now = now._replace(watts=report.watts)
        if report.residency is not None:
            now = now._replace(residency=report.residency)
        if report.num_in_flight is not None:
            now = now._replace(num_in_flight=max(report.num_in_flight, 1))
        if report.is_degraded is not None:
            now = now._replace(is_degraded=report.is_degraded)
        self._now = now
        if report.queue_ms is not None:
            self._queue.add(report.queue_ms, at_s)
        usual = now.pass_costs.ms(max(now.rows_busy, 1.0), 1.0)
        if report.step_ms is not None and report.step_ms > 0.0 and usual > 0.0:
            self._pace.add(report.step_ms / usual, at_s)

    def figures(self) -> CloudFigures:
        now = self._now
        queue, late = self._queue.quantile(0.5), self._queue.quantile(_P95)
        if queue is not None and late is not None:
            now = now._replace(queue_ms=queue, queue_late_ms=late)
        pace = self._pace.quantile(0.5)
        if pace is not None and len(self._pace) >= _MIN_SAMPLES:
            pass_costs = now.pass_costs
            now = now._replace(
                pass_costs=PassCostModel(
                    pass_costs.fixed * pace,
                    pass_costs.per_row * pace,
                    pass_costs.per_token * pace,
                    pass_costs.per_row_token * pace,
                )
            )
        return now


class EdgeEstimator:
    """This machine's figures, from a prior on."""

    def __init__(self, prior: EdgeFigures) -> None:
        self._now = prior
        self._draft = RecentQuantiles(NUM_SAMPLES, HALF_LIFE_S)

    def sample(
        self,
        at_s: float,
        draft_ms: float | None = None,
        throttle: float | None = None,
        temperature_c: float | None = None,
        load: float | None = None,
        watts: float | None = None,
    ) -> None:
        if draft_ms is not None:
            self._draft.add(draft_ms, at_s)
        now = self._now
        if throttle is not None and math.isfinite(throttle):
            now = now._replace(throttle=min(max(throttle, 0.0), 1.0))
        if temperature_c is not None and math.isfinite(temperature_c):
            now = now._replace(temperature_c=temperature_c)
        if load is not None and 0.0 <= load < math.inf:
            now = now._replace(load=load)
        if watts is not None and 0.0 <= watts < math.inf:
            now = now._replace(watts=watts)
        self._now = now

    def figures(self) -> EdgeFigures:
        draft = self._draft.quantile(0.5)
        if draft is None or len(self._draft) < _MIN_SAMPLES:
            return self._now
        pace = draft / self._now.draft_ms if self._now.draft_ms > 0.0 else 1.0
        return self._now._replace(draft_ms=draft, prompt_ms=self._now.prompt_ms * pace)


class RequestProfile:
    """The typical request of a kind: how many tokens, and how often a guess is accepted where those before it were."""

    def __init__(self, prior_rate: float) -> None:
        self._tokens = RecentQuantiles(64, 1e9)
        self._num_asked = 0
        self._num_accepted, self._num_tried = 8.0 * prior_rate, 8.0

    def learn(self, num_tokens: int, num_drafted: int, num_stood: int, window: int) -> None:
        if num_tokens > 0:
            self._num_asked += 1
            self._tokens.add(float(num_tokens), float(self._num_asked))
        if num_drafted > 0 and window > 0:
            rate = _rate_from_share(min(max(num_stood / num_drafted, 0.0), 1.0), window)
            tried = min(num_stood / rate if rate > 0.0 else 1.0, num_drafted)
            self._num_accepted = self._num_accepted * 0.98 + rate * tried
            self._num_tried = self._num_tried * 0.98 + tried

    @property
    def num_tokens(self) -> int | None:
        usual = self._tokens.quantile(0.5)
        return None if usual is None else int(usual)

    def acceptance_curve(self, num_places: int) -> tuple[float, ...]:
        return _acceptance_curve(
            round(min(max(self._num_accepted / self._num_tried, 0.002), 0.998), 2), num_places
        )


@lru_cache(maxsize=128)
def _acceptance_curve(rate: float, num_places: int) -> tuple[float, ...]:
    return tuple(rate**place for place in range(1, num_places + 1))


def _rate_from_share(share: float, window: int) -> float:
    """The acceptance rate r of a guess after accepted ones, from the share accepted of windows: Σ r^j = share · k."""
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2.0
        if sum(middle**place for place in range(1, window + 1)) < share * window:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0
