"""The verdict on a candidate, from its trials: pure. It passes where every check holds; what is not known does not.

The chance of passing a candidate that is worse by the margin is held to `MAX_FALSE_PASS` over all tries of its lineage
together: try k has 6/(π²k²) of it, and these sum to one. A test that must hold in every trial needs no correction for
their number (an intersection–union test: Berger 1982).
"""

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from htfi.governance.sandbox.results import LinkOutcome, TrialEnding, TrialResult
from htfi.governance.sandbox.trials import TrialMarket

MAX_FALSE_PASS = 0.05
MIN_REAL_GAIN = 0.95  # from which a gain is called one: the chance that it is more than luck
MAX_INVALID_SHARE = 0.01
MAX_OWN_LOSS = 2.0  # of an expert alone, times the champion's: beyond it the mix has to be kept from harm
MAX_LEARNT_BY_HEART = (
    0.15  # how much better, in the champion's loss, it may be on the history than on one in disguise
)
MAX_MOVED_MORE = 0.05  # of a 90% band, by attacks, beyond the champion
MAX_WITHHELD_MORE, MAX_RELEASED_MORE = 0.05, 0.02
MAX_TIMES_AS_SLOW, SLOWER_MS = 3.0, 50.0
MAX_LATE_MORE, MAX_FEWER_IN_TIME = 0.1, 0.25  # of a link's readings, beside the champion


class SandboxCheck(StrEnum):
    """What a candidate is held to."""

    ENDING = "ends as it should"
    VALID = "forecasts are valid"
    REPEATS = "same events, same forecasts"
    NOT_WORSE = "not worse than the champion"
    ALONE = "alone not harmful"
    NOT_LEARNT = "history not learnt by heart"
    VIEWS = "views no worse"
    ATTACKS = "attacks move it no farther"
    POLICY = "policy neither looser nor silent"
    SPEED = "no slower"
    LOAD = "keeps up at peak load"
    SAME_TOKENS = "tokens of plain decoding over any link"
    NO_STALL = "every reading over a link is answered"
    DEADLINE = "readings over a link by their deadline"


class FailedCheck(msgspec.Struct, frozen=True):
    """A check that does not hold: in which trial, and why in words."""

    check: SandboxCheck
    trial: str
    why: str


def permitted_chance(num_tries: int) -> float:
    """The chance of a false pass that this try may have, the k-th of its lineage (k from 1)."""
    return MAX_FALSE_PASS * 6.0 / (math.pi * num_tries) ** 2


def max_answer_ms(champion_p95_ms: float) -> float:
    """How long 95% of a candidate's answers may take."""
    return MAX_TIMES_AS_SLOW * champion_p95_ms + SLOWER_MS


def failed_checks(results: Sequence[TrialResult], num_tries: int) -> list[FailedCheck]:
    """Every check that does not hold, in the order of trials. None: it passes."""
    permitted = permitted_chance(num_tries)
    found = [one for result in results for one in _of_trial(result, permitted)]
    found += _learnt_by_heart({result.trial: result for result in results})
    if not results:
        found.append(FailedCheck(SandboxCheck.ENDING, "", "no trial touches it: nothing is known of it"))
    return found


def _of_trial(result: TrialResult, permitted: float) -> list[FailedCheck]:
    trial, num = result.trial, max(result.num_forecasts, 1)
    if result.ending is not TrialEnding.FINISHED:
        return [FailedCheck(SandboxCheck.ENDING, trial, f"{result.ending.value}: {result.detail}")]
    if result.link is not None:
        return _of_link(trial, result.link, result.champion_link)
    found: list[FailedCheck] = []

    def hold(holds: bool, check: SandboxCheck, why: str) -> None:
        if not holds:
            found.append(FailedCheck(check, trial, why))

    hold(
        result.num_invalid <= MAX_INVALID_SHARE * num, SandboxCheck.VALID,
        f"{result.num_invalid:,} of {num:,} forecasts are missing, not finite or cross",
    )  # fmt: skip
    hold(result.repeats, SandboxCheck.REPEATS, "a second run on the same events gave other forecasts")
    hold(
        result.p_worse is not None and result.p_worse <= permitted, SandboxCheck.NOT_WORSE,
        f"its loss is {_text(result.loss)} of the champion’s, and the chance that it is worse is "
        f"{_text(result.p_worse)}, permitted {permitted:.3g}",
    )  # fmt: skip
    hold(
        result.own_loss is None or result.own_loss <= MAX_OWN_LOSS, SandboxCheck.ALONE,
        f"alone its loss is {_text(result.own_loss)} of the champion’s, limit {MAX_OWN_LOSS:g}",
    )  # fmt: skip
    hold(
        result.p_views is None or result.p_views <= permitted, SandboxCheck.VIEWS,
        f"the share of views with the right sign is {_text(result.right_views)}, "
        f"the champion’s {_text(result.champion_right_views)}",
    )  # fmt: skip
    hold(
        result.champion_moved is None
        or (result.moved is not None and result.moved <= result.champion_moved + MAX_MOVED_MORE),
        SandboxCheck.ATTACKS,
        f"attacks move a median by {_text(result.moved)} of its band, the champion’s by {_text(result.champion_moved)}",
    )  # fmt: skip
    hold(
        result.num_withheld - result.champion_withheld <= MAX_WITHHELD_MORE * num, SandboxCheck.POLICY,
        f"{result.num_withheld:,} forecasts are withheld, by the champion {result.champion_withheld:,}",
    )  # fmt: skip
    hold(
        result.num_released_more <= MAX_RELEASED_MORE * num, SandboxCheck.POLICY,
        f"{result.num_released_more:,} forecasts are released that the champion withholds or marks",
    )  # fmt: skip
    if result.answer_p95_ms is not None and result.champion_p95_ms is not None:
        limit_ms = max_answer_ms(result.champion_p95_ms)
        hold(
            result.answer_p95_ms <= limit_ms, SandboxCheck.SPEED,
            f"95% of answers take up to {result.answer_p95_ms:.1f} ms, limit {limit_ms:.1f} ms",
        )  # fmt: skip
    hold(
        result.needed_events_per_s <= (result.events_per_s or 0.0), SandboxCheck.LOAD,
        f"it takes {result.events_per_s or 0.0:,.0f} events a second, needed {result.needed_events_per_s:,.0f}",
    )  # fmt: skip
    return found


def _of_link(trial: str, link: LinkOutcome, champion: LinkOutcome | None) -> list[FailedCheck]:
    found: list[FailedCheck] = []
    if link.num_other_tokens:
        why = f"{link.num_other_tokens} of {link.num_readings} readings have other tokens than plain decoding"
        found.append(FailedCheck(SandboxCheck.SAME_TOKENS, trial, why))
    if link.num_stalled or not link.num_readings:
        why = f"{link.num_stalled} of {link.num_readings} readings are never answered by the target"
        found.append(FailedCheck(SandboxCheck.NO_STALL, trial, why))
    late, in_time = (
        (champion.num_late, champion.num_in_time) if champion is not None else (0, link.num_readings)
    )
    if link.num_late - late > MAX_LATE_MORE * link.num_readings:
        why = f"{link.num_late} of {link.num_readings} readings come after their deadline, the champion’s {late}"
        found.append(FailedCheck(SandboxCheck.DEADLINE, trial, why))
    if in_time - link.num_in_time > MAX_FEWER_IN_TIME * link.num_readings:
        why = (
            f"the target answers {link.num_in_time} of {link.num_readings} in time, the champion’s {in_time}"
        )
        found.append(FailedCheck(SandboxCheck.DEADLINE, trial, why))
    return found


def _learnt_by_heart(results: Mapping[str, TrialResult]) -> list[FailedCheck]:
    """A loss on the history that is far below that on the same moves in disguise."""
    plain, hidden = (results.get(one.value) for one in (TrialMarket.HISTORY, TrialMarket.DISGUISED))
    if plain is None or hidden is None:
        return []
    pairs = (("its", plain.loss, hidden.loss), ("its own", plain.own_loss, hidden.own_loss))
    return [
        FailedCheck(
            SandboxCheck.NOT_LEARNT, plain.trial,
            f"{what} loss is {known:.3f} of the champion’s on the history and {unknown:.3f} in disguise",
        )
        for what, known, unknown in pairs
        if known is not None and unknown is not None and unknown - known > MAX_LEARNT_BY_HEART
    ]  # fmt: skip


def _text(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}"
