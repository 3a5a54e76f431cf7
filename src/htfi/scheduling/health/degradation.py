"""Whether a node that answers is degraded: slower than its baseline, stalled, hot, throttled, or far away.

`peer_contact` assesses each peer at each of its heartbeats, and `monitor` the node itself.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from htfi.scheduling.health.config import (
    COOLED_BY_C,
    DEGRADED_AFTER_MS,
    HEALTHY_AFTER_MS,
    LEARN_MS,
    QUEUE_FLOOR,
    QUEUE_RATIO,
    RECOVERY_SHARE,
    RTT_FLOOR_MS,
    RTT_RATIO,
    SLOW_FLOOR_MS,
    SLOW_RATIO,
    STALL_MS,
    STALL_STEPS,
    THROTTLE_SHARE,
    WARM_UP_MS,
    HealthConfig,
)
from htfi.scheduling.health.messages import NodeHealthMetrics

_NUM_PASS_SIZES = 8  # powers of two of rows


@dataclass(frozen=True, slots=True)
class Baseline:
    """A slow mean of a figure that is above 0 (of its logarithm), and for how long it has been learnt."""

    log: float
    learned_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Degradation:
    """`symptoms` name what is wrong, '' when healthy. `turning_s`: since when the symptoms differ from the status."""

    symptoms: str = ""
    turning_s: float = math.inf
    judged_s: float = -math.inf
    moved_s: float = -math.inf  # when progress was last seen, or there was nothing to do
    progress: int = -1
    # A pass over many rows takes longer for good reason: each size of pass (power of two of rows) has its own usual.
    usual: Mapping[str, Baseline] = field(default_factory=dict[str, Baseline])

    @property
    def is_degraded(self) -> bool:
        return bool(self.symptoms)


def assess(
    state: Degradation, metrics: NodeHealthMetrics, rtt_ms: float | None, now_s: float, config: HealthConfig
) -> Degradation:
    """The assessment after new metrics. Seconds of any one clock; `rtt_ms` None: not known.

    Symptoms must last `DEGRADED_AFTER_MS` before a node is degraded, and be below `RECOVERY_SHARE` of each limit for
    `HEALTHY_AFTER_MS` before it is healthy again.
    """
    is_idle = not (metrics.queue or metrics.num_rows)
    has_moved = is_idle or metrics.progress != state.progress or state.progress < 0
    now = replace(
        state,
        judged_s=now_s,
        progress=metrics.progress,
        moved_s=now_s if has_moved else state.moved_s,
    )
    scale = RECOVERY_SHARE if state.is_degraded else 1.0
    signs = "; ".join(_symptoms(now, metrics, rtt_ms, now_s, scale, config))
    learnt = _update_baselines(state, metrics, rtt_ms, now_s, bool(signs))
    if bool(signs) == state.is_degraded:
        return replace(now, symptoms=signs, turning_s=math.inf, usual=learnt)
    turning_s = min(state.turning_s, now_s)
    needed_ms = HEALTHY_AFTER_MS if state.is_degraded else DEGRADED_AFTER_MS
    if (now_s - turning_s) * 1e3 < needed_ms:
        return replace(now, turning_s=turning_s, usual=learnt)
    return replace(now, symptoms=signs, turning_s=math.inf, usual=learnt)


def _symptoms(
    state: Degradation,
    metrics: NodeHealthMetrics,
    rtt_ms: float | None,
    now_s: float,
    scale: float,
    config: HealthConfig,
) -> Iterator[str]:
    step = metrics.step_p50_ms
    usual = _baseline_of(state, _pass_size_key(metrics))
    if usual is not None and step > max(SLOW_FLOOR_MS, SLOW_RATIO * usual) * scale:
        yield f"a step takes {step:.1f} ms, usually {usual:.1f} ms"
    still_ms = (now_s - state.moved_s) * 1e3
    if still_ms >= max(STALL_MS, STALL_STEPS * metrics.step_p95_ms):
        yield f"no progress for {still_ms:.0f} ms with work waiting"
    usual = _baseline_of(state, "queue")
    limit = max(QUEUE_FLOOR, QUEUE_RATIO * (usual or 0.0))
    if metrics.queue > limit * scale:
        yield f"{metrics.queue} requests wait"
    if rtt_ms is not None:
        usual = _baseline_of(state, "rtt")
        if rtt_ms > max(RTT_FLOOR_MS, RTT_RATIO * (usual or 0.0)) * scale:
            yield f"the round trip takes {rtt_ms:.0f} ms"
    hot_c = config.hot_c - (COOLED_BY_C if state.is_degraded else 0.0)
    if metrics.temperature_c is not None and metrics.temperature_c >= hot_c:
        yield f"{metrics.temperature_c:.0f} °C"
    if metrics.throttle_share >= THROTTLE_SHARE * scale:
        yield f"throttled {metrics.throttle_share:.0%} of the time"


def _update_baselines(
    state: Degradation,
    metrics: NodeHealthMetrics,
    rtt_ms: float | None,
    now_s: float,
    is_odd: bool,
) -> Mapping[str, Baseline]:
    """The baselines follow slowly; ten times as slowly while there are symptoms, which must not become the baseline."""
    gap_ms = min(1_000.0, max(0.0, (now_s - state.judged_s) * 1e3))
    usual = dict(state.usual)
    figures = {
        "queue": metrics.queue + 1.0,
        _pass_size_key(metrics): metrics.step_p50_ms,
        "rtt": rtt_ms or 0.0,
    }
    for name, figure in figures.items():
        if figure <= 0.0:
            continue
        before = usual.get(name)
        if before is None:
            usual[name] = Baseline(math.log(figure))
            continue
        # As a plain mean at first, so that the first figure does not rule for a minute.
        span_ms = min(LEARN_MS, before.learned_ms + gap_ms) * (10.0 if is_odd else 1.0)
        share = gap_ms / span_ms if span_ms else 0.0
        usual[name] = Baseline(
            before.log + share * (math.log(figure) - before.log),
            min(LEARN_MS, before.learned_ms + gap_ms),
        )
    return usual


def _baseline_of(state: Degradation, name: str) -> float | None:
    known = state.usual.get(name)
    return math.exp(known.log) if known is not None and known.learned_ms >= WARM_UP_MS else None


def _pass_size_key(metrics: NodeHealthMetrics) -> str:
    return f"step {min(_NUM_PASS_SIZES, max(1, metrics.num_rows).bit_length())}"
