"""Chooses the rung of the fidelity ladder for one decision, with its reasons. Pure; pipeline and auditors call it.

| rung        | when                                                   |
|-------------|--------------------------------------------------------|
| TEMPLATE    | shock, or no time                                      |
| EDGE        | short deadline, high load                              |
| SPECULATIVE | the normal case                                        |
| DEEP        | news and numbers disagree                              |
| SECURE      | manipulation suspected                                 |

Beside the deadline it chooses by load: `ReadingTimes` holds how long readings take. A run over files has no clock: a
reading then takes what the settings state, so that a recorded day gives the same decisions on any machine.
"""

import zlib
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from htfi.domain.decision import Regime
from htfi.domain.plan import FidelityPlan, LadderInputs, PlanReason, Rung
from htfi.domain.time import NS_PER_MS, NS_PER_S
from htfi.scheduling.config import FidelityConfig


class Influences(NamedTuple):
    """What a reading could move of the 90% band, by the draft, the target, the encoder: as in `LadderInputs`."""

    edge: float | UnsetType = UNSET
    speculative: float | UnsetType = UNSET
    encoder: float | UnsetType = UNSET


NOT_ASKED = Influences()
HALF_LIFE_S = 5.0  # of an excess over the settings: so a rung that was too slow is tried again


class ReadingTimes:
    """The recent time of one reading at each rung, by a clock in ns; what the settings state where none is given.

    A peak estimate (as peak EWMA in load balancing): a slower reading counts at once, a faster one by half, and what
    exceeds the settings fades with a half-life.
    """

    def __init__(self, config: FidelityConfig, clock: Callable[[], int] | None = None) -> None:
        self._config = config
        self._clock = clock
        self._excess: dict[Rung, tuple[float, int]] = {}  # ms beyond the settings, and when

    @contextmanager
    def measure(self, rung: Rung, num: int) -> Generator[None]:
        """Measure the readings inside, `num` of them at a rung."""
        start_ns = self._clock() if self._clock is not None else 0
        yield
        if self._clock is not None and num > 0:
            now_ns = self._clock()
            sample_ms = (now_ns - start_ns) / NS_PER_MS / num - rung_time_ms(rung, self._config)
            known_ms = self._excess_ms(rung)
            excess_ms = sample_ms if sample_ms > known_ms else 0.5 * (known_ms + max(sample_ms, 0.0))
            self._excess[rung] = excess_ms, now_ns

    def _excess_ms(self, rung: Rung) -> float:
        if self._clock is None or rung not in self._excess:
            return 0.0
        excess_ms, at_ns = self._excess[rung]
        return excess_ms * 0.5 ** ((self._clock() - at_ns) / NS_PER_S / HALF_LIFE_S)

    def expected_ms(self, rung: Rung) -> float:
        return round(rung_time_ms(rung, self._config) + max(self._excess_ms(rung), 0.0), 3)

    def inputs(
        self,
        num_waiting: int,
        left_ms: float,
        divergence: float = 0.0,
        influences: Influences = NOT_ASKED,
    ) -> LadderInputs:
        """What the ladder sees, where so many readings wait and so much of the deadline is left."""
        edge_ms, speculative_ms = self.expected_ms(Rung.EDGE), self.expected_ms(Rung.SPECULATIVE)
        return LadderInputs(num_waiting, round(left_ms, 3), edge_ms, speculative_ms, divergence, *influences)


def deadline_of(inputs: LadderInputs) -> float:
    """The part of the time left that is one reading's: an equal share, or what the cheapest reading needs."""
    return max(inputs.left_ms / inputs.num_waiting, min(inputs.left_ms, inputs.edge_ms))


def left_after(inputs: LadderInputs, rung: Rung, config: FidelityConfig) -> float:
    """The time that is left for the next readings after one at a rung."""
    match rung:
        case Rung.TEMPLATE:
            needed_ms = 0.0
        case Rung.EDGE:
            needed_ms = inputs.edge_ms
        case Rung.SPECULATIVE | Rung.SECURE:
            needed_ms = inputs.speculative_ms
        case Rung.DEEP:
            needed_ms = config.deep_ms
    return inputs.left_ms - needed_ms


def rung_time_ms(rung: Rung, config: FidelityConfig) -> float:
    """The time that the settings allow for one reading at a rung."""
    match rung:
        case Rung.TEMPLATE:
            return 0.0
        case Rung.EDGE:
            return config.edge_ms
        case Rung.SPECULATIVE | Rung.SECURE:
            return config.speculative_ms
        case Rung.DEEP:
            return config.deep_ms


# How rungs are chosen and recorded. Version 1 knew no load and recorded its reasons as sentences, 2 no influence.
VERSION = "fidelity/3"
# One in so many items that could hardly move a forecast is read all the same, by a model or by the encoder.
TRIAL_SHARE, ENCODER_TRIAL_SHARE = 128, 16
WATCH_SHARE = (
    8  # one in so many items is read by a reader whose breaker is open, unweighed, so that it is watched
)
_DEFAULT = FidelityConfig()

# What stands in for a rung that has no reader, best first. Nothing that drafts from text stands in for SECURE.
_FALLBACKS = {
    Rung.TEMPLATE: (),
    Rung.EDGE: (),
    Rung.SPECULATIVE: (Rung.EDGE,),
    Rung.DEEP: (Rung.SPECULATIVE, Rung.EDGE),
    Rung.SECURE: (),
}


@lru_cache(maxsize=256)  # the same few answers, again and again
def choose_plan(
    regime: Regime,
    deadline_ms: float,
    available: frozenset[Rung],
    *,
    inputs: LadderInputs | UnsetType = UNSET,
    suspicion: bool = False,
    newest_item: str = "",
    config: FidelityConfig = _DEFAULT,
) -> FidelityPlan:
    """The rung that suits the moment, or the next lower one that has a reader; TEMPLATE needs none.

    `inputs` are the load, the divergence and the influences that the decision faces; without them there are none. A
    reading that could hardly move the forecast is made only on trial, for some of the `newest_item`s. A rung whose
    reader is held counts as one without.
    """
    held = frozenset[Rung]() if inputs is UNSET else inputs.left_out
    available -= held
    rung, reasons = _preferred_rung(regime, deadline_ms, inputs, suspicion, config)
    if rung is not Rung.TEMPLATE and rung not in available:
        reasons = (*reasons, PlanReason.HELD if rung in held else PlanReason.UNAVAILABLE)
        rung = next((other for other in _FALLBACKS[rung] if other in available), Rung.TEMPLATE)
    if inputs is not UNSET and rung in (Rung.SPECULATIVE, Rung.EDGE):
        worthwhile = _worthwhile_rung(rung, inputs, available, config)
        if worthwhile is not rung and is_trial(newest_item):
            reasons = (*reasons, PlanReason.TRIAL)
        elif worthwhile is not rung:
            is_silent = worthwhile is Rung.TEMPLATE and not _encoder_counts(inputs, newest_item, config)
            rung = worthwhile
            reasons = (*reasons, PlanReason.NO_INFLUENCE if is_silent else PlanReason.LOW_INFLUENCE)
    return FidelityPlan(rung, UNSET, deadline_ms, None, reasons, inputs)


def _encoder_counts(inputs: LadderInputs, newest_item: str, config: FidelityConfig) -> bool:
    """Whether the encoder's readings could move enough of the forecast, or are made on trial."""
    influence = inputs.encoder_influence
    return influence is not UNSET and (influence >= config.min_influence or is_encoder_trial(newest_item))


def _worthwhile_rung(
    rung: Rung, inputs: LadderInputs, available: frozenset[Rung], config: FidelityConfig
) -> Rung:
    """The rung, or the highest below it, whose reading could move enough of the forecast."""
    influences = {Rung.SPECULATIVE: inputs.speculative_influence, Rung.EDGE: inputs.edge_influence}
    candidates = (rung, Rung.EDGE) if Rung.EDGE in available else (rung,)
    for candidate in candidates:
        influence = influences[candidate]
        if influence is UNSET or influence >= config.min_influence:
            return candidate
    return Rung.TEMPLATE


def is_trial(item: str) -> bool:
    """Whether the news whose newest item has this id gets a model's reading on trial: by a digest of the id.

    For all symbols alike: questions on the same news share most of their cost.
    """
    return bool(item) and zlib.crc32(item.encode()) % TRIAL_SHARE == 0


def is_encoder_trial(item: str) -> bool:
    """Whether the encoder's readings count on trial where the newest item has this id."""
    return bool(item) and zlib.crc32(item.encode()) % ENCODER_TRIAL_SHARE == 1


def is_watched(item: str) -> bool:
    """Whether news whose newest item has this id is read by a reader whose breaker is open all the same."""
    return zlib.crc32(item.encode()) % WATCH_SHARE == 2


def is_silent(plan: FidelityPlan) -> bool:
    """Whether no reading could move the forecast: the news is cited, and nothing is made of it."""
    return PlanReason.NO_INFLUENCE in plan.reasons


def _preferred_rung(
    regime: Regime,
    deadline_ms: float,
    inputs: LadderInputs | UnsetType,
    suspicion: bool,
    config: FidelityConfig,
) -> tuple[Rung, tuple[PlanReason, ...]]:
    if suspicion:
        return Rung.SECURE, (PlanReason.SUSPICION,)
    if regime is Regime.SHOCK:
        return Rung.TEMPLATE, (PlanReason.SHOCK,)
    edge_ms, speculative_ms, is_overloaded, divergence = config.edge_ms, config.speculative_ms, False, 0.0
    if inputs is not UNSET:
        edge_ms, speculative_ms = max(edge_ms, inputs.edge_ms), max(speculative_ms, inputs.speculative_ms)
        is_overloaded, divergence = not inputs.load <= config.high_load, inputs.divergence
    # Written so that a deadline or load that is not a number counts as no time and full load.
    if not deadline_ms >= edge_ms:
        overload = (PlanReason.HIGH_LOAD,) if is_overloaded else ()
        return Rung.TEMPLATE, (*overload, PlanReason.NO_TIME)
    if is_overloaded:
        return Rung.EDGE, (PlanReason.HIGH_LOAD,)
    if not deadline_ms >= speculative_ms:
        return Rung.EDGE, (PlanReason.SHORT_DEADLINE,)
    if divergence >= config.high_divergence and deadline_ms >= config.deep_ms:
        return Rung.DEEP, (PlanReason.DISAGREEMENT,)
    return Rung.SPECULATIVE, (PlanReason.NORMAL,)


def plan_deep_reads(
    plans: Sequence[FidelityPlan],
    divergences: Sequence[float],
    bars_ms: Sequence[float],
    config: FidelityConfig = _DEFAULT,
    max_readings: int | None = None,
) -> tuple[dict[int, FidelityPlan], int]:
    """The plans, by place, whose news is read again in depth once they are released; and the number skipped for lack
    of time or budget (at most `max_readings` readings).

    `divergences` are ranks 0–1; the largest come first. Time is as the settings state it, so that a replay asks for
    the same.
    """
    candidates = [
        index for index, divergence in enumerate(divergences) if divergence >= config.high_divergence
    ]
    candidates = [index for index in candidates if plans[index].rung not in (Rung.DEEP, Rung.SECURE)]
    in_time = [index for index in candidates if 2.0 * config.deep_ms <= bars_ms[index]]
    in_time.sort(key=lambda index: -divergences[index])
    chosen = sorted(in_time[: int(config.deep_budget_ms / config.deep_ms)][:max_readings])
    return {index: replace(plans[index], rung_after_release=Rung.DEEP) for index in chosen}, len(
        candidates
    ) - len(chosen)


def mark_high_value(plan: FidelityPlan) -> FidelityPlan:
    """A plan to read again in depth because the news is worth it, whether or not the numbers disagree."""
    return plan.with_reason(PlanReason.HIGH_VALUE)


def is_high_value(plan: FidelityPlan) -> bool:
    """Whether the news is read again in depth."""
    return plan.rung_after_release is Rung.DEEP and PlanReason.HIGH_VALUE in plan.reasons


def prepared_plan(plan: FidelityPlan, then: Rung | None) -> FidelityPlan:
    """The plan of a decision that takes a prepared view, the news itself being read at a rung after its release."""
    return FidelityPlan(Rung.TEMPLATE, UNSET, plan.deadline_ms, then, (PlanReason.PREPARED,), plan.inputs)


def is_prepared(plan: FidelityPlan) -> bool:
    """Whether the decision was served with a view that was prepared ahead."""
    return PlanReason.PREPARED in plan.reasons


def deep_read_plan(first: FidelityPlan, config: FidelityConfig = _DEFAULT) -> FidelityPlan:
    """The plan of an amendment made by a reading in depth, from the plan of the first."""
    reason = PlanReason.HIGH_VALUE if is_high_value(first) else PlanReason.DISAGREEMENT
    return FidelityPlan(Rung.DEEP, UNSET, config.deep_ms, None, (reason,))


def verification_plan(first: FidelityPlan, config: FidelityConfig = _DEFAULT) -> FidelityPlan:
    """The plan of an amendment that reads the news itself, where the first took a view that was prepared ahead."""
    rung = first.rung_after_release or first.rung
    codes = (*first.reasons, PlanReason.VERIFICATION)
    return FidelityPlan(rung, UNSET, rung_time_ms(rung, config), None, codes)


def follows(first: FidelityPlan, plan: FidelityPlan) -> bool:
    """Whether the plan of an amendment follows from that of the decision that it amends."""
    if first.rung_after_release is None:
        return plan == first
    verified = first.rung_after_release is Rung.DEEP or plan.reasons == (
        *first.reasons,
        PlanReason.VERIFICATION,
    )
    return plan.rung is first.rung_after_release and plan.rung_after_release is None and verified


_LATER = frozenset({PlanReason.DRAFT_SUFFICES, PlanReason.HIGH_VALUE})


def plan_problems(
    found: FidelityPlan,
    regime: Regime,
    available: frozenset[Rung],
    suspicion: bool,
    config: FidelityConfig,
    newest_item: str = "",
) -> list[str]:
    """Whether a recorded plan follows from what was recorded with it; entries without codes are not judged."""
    if found.reason_codes is UNSET or is_prepared(found):
        return []
    expected = choose_plan(
        regime,
        found.deadline_ms,
        available,
        inputs=found.inputs,
        suspicion=suspicion,
        newest_item=newest_item,
        config=config,
    )
    reasons = tuple(code for code in found.reason_codes if code not in _LATER)
    is_capped = PlanReason.DRAFT_SUFFICES in found.reason_codes and found.rung is Rung.EDGE
    if reasons != expected.reasons or (found.rung is not expected.rung and not is_capped):
        return [f"the rung {found.rung.value} does not follow from deadline and load"]
    return []
