"""The ladder's table, rung by rung; what stands in for a rung without a reader; what the record keeps of a choice."""

from itertools import pairwise

import msgspec
import pytest

from htfi.domain.decision import Regime
from htfi.domain.errors import InvalidInput
from htfi.domain.plan import FidelityPlan, LadderInputs, PlanReason, Rung
from htfi.scheduling.config import FidelityConfig
from htfi.scheduling.fidelity import (
    ReadingTimes,
    choose_plan,
    deadline_of,
    follows,
    is_encoder_trial,
    is_prepared,
    is_silent,
    is_trial,
    left_after,
    plan_problems,
    verification_plan,
)

ALL = frozenset(Rung)
LONG_MS, MIDDLE_MS, SHORT_MS, NONE_MS = 5_000.0, 300.0, 50.0, 5.0
CALM_INPUTS = LadderInputs(1, LONG_MS, 20.0, 80.0)
LOADED = LadderInputs(9, 800.0, 20.0, 80.0)  # a load of 0.9
DIVERGED = LadderInputs(1, LONG_MS, 20.0, 80.0, divergence=0.95)


Influence = float | msgspec.UnsetType
TRIAL = next(name for number in range(10_000) if is_trial(name := f"item {number}"))
ENCODER_TRIAL = next(name for number in range(10_000) if is_encoder_trial(name := f"item {number}"))


def influence(
    edge: Influence, speculative: Influence, encoder: Influence = 0.2, num_waiting: int = 1
) -> LadderInputs:
    return LadderInputs(
        num_waiting,
        800.0,
        20.0,
        80.0,
        edge_influence=edge,
        speculative_influence=speculative,
        encoder_influence=encoder,
    )


@pytest.mark.parametrize(
    ("regime", "deadline_ms", "inputs", "rung", "reasons"),
    [
        (Regime.NORMAL, MIDDLE_MS, msgspec.UNSET, Rung.SPECULATIVE, (PlanReason.NORMAL,)),
        (Regime.NORMAL, MIDDLE_MS, CALM_INPUTS, Rung.SPECULATIVE, (PlanReason.NORMAL,)),
        (Regime.SHOCK, LONG_MS, CALM_INPUTS, Rung.TEMPLATE, (PlanReason.SHOCK,)),
        (Regime.CALM, NONE_MS, CALM_INPUTS, Rung.TEMPLATE, (PlanReason.NO_TIME,)),
        (Regime.CALM, NONE_MS, LOADED, Rung.TEMPLATE, (PlanReason.HIGH_LOAD, PlanReason.NO_TIME)),
        (Regime.CALM, float("nan"), msgspec.UNSET, Rung.TEMPLATE, (PlanReason.NO_TIME,)),
        (Regime.STRESSED, SHORT_MS, CALM_INPUTS, Rung.EDGE, (PlanReason.SHORT_DEADLINE,)),
        (Regime.NORMAL, LONG_MS, LOADED, Rung.EDGE, (PlanReason.HIGH_LOAD,)),
        (Regime.NORMAL, LONG_MS, LadderInputs(1, float("nan"), 20.0, 80.0), Rung.EDGE, (PlanReason.HIGH_LOAD,)),
        (Regime.NORMAL, LONG_MS, DIVERGED, Rung.DEEP, (PlanReason.DISAGREEMENT,)),
        (Regime.NORMAL, MIDDLE_MS, DIVERGED, Rung.SPECULATIVE, (PlanReason.NORMAL,)),
    ],
)  # fmt: skip
def test_rung_follows_the_ladder(
    regime: Regime, deadline_ms: float, inputs: LadderInputs, rung: Rung, reasons: tuple[PlanReason, ...]
) -> None:
    found = choose_plan(regime, deadline_ms, ALL, inputs=inputs)
    assert (found.rung, found.reasons, found.inputs) == (rung, reasons, inputs)
    assert plan_problems(found, regime, ALL, False, FidelityConfig()) == []


@pytest.mark.parametrize(
    ("inputs", "rung", "reasons"),
    [
        (influence(0.3, 0.3), Rung.SPECULATIVE, (PlanReason.NORMAL,)),
        (influence(0.0, 0.15), Rung.SPECULATIVE, (PlanReason.NORMAL,)),
        (influence(0.3, 0.1), Rung.EDGE, (PlanReason.NORMAL, PlanReason.LOW_INFLUENCE)),
        (influence(0.1, 0.1), Rung.TEMPLATE, (PlanReason.NORMAL, PlanReason.LOW_INFLUENCE)),
        (influence(0.1, 0.1, 0.1), Rung.TEMPLATE, (PlanReason.NORMAL, PlanReason.NO_INFLUENCE)),
        (influence(0.1, 0.1, msgspec.UNSET), Rung.TEMPLATE, (PlanReason.NORMAL, PlanReason.NO_INFLUENCE)),
        (influence(msgspec.UNSET, 0.1, 0.0), Rung.EDGE, (PlanReason.NORMAL, PlanReason.LOW_INFLUENCE)),
        (influence(0.3, 0.3, 0.0, 9), Rung.EDGE, (PlanReason.HIGH_LOAD,)),
        (influence(0.1, 0.3, 0.2, 9), Rung.TEMPLATE, (PlanReason.HIGH_LOAD, PlanReason.LOW_INFLUENCE)),
        (influence(*[float("nan")] * 3), Rung.TEMPLATE, (PlanReason.NORMAL, PlanReason.NO_INFLUENCE)),
    ],
)  # fmt: skip
def test_a_reading_is_made_where_it_can_move_the_forecast(
    inputs: LadderInputs, rung: Rung, reasons: tuple[PlanReason, ...]
) -> None:
    found = choose_plan(Regime.NORMAL, MIDDLE_MS, ALL, inputs=inputs)
    assert (found.rung, found.reasons) == (rung, reasons)
    assert found.counts_encoder_alone == (rung is Rung.TEMPLATE and PlanReason.LOW_INFLUENCE in reasons)
    assert is_silent(found) == (PlanReason.NO_INFLUENCE in reasons)
    assert plan_problems(found, Regime.NORMAL, ALL, False, FidelityConfig()) == []


def test_with_no_minimum_everything_is_read() -> None:
    always = FidelityConfig(min_influence=0.0)
    found = choose_plan(Regime.NORMAL, MIDDLE_MS, ALL, inputs=influence(0.0, 0.0, 0.0), config=always)
    assert (found.rung, found.reasons) == (Rung.SPECULATIVE, (PlanReason.NORMAL,))


def test_without_a_draft_what_the_target_is_not_worth_no_model_reads() -> None:
    only = frozenset({Rung.TEMPLATE, Rung.SPECULATIVE})
    assert choose_plan(Regime.NORMAL, MIDDLE_MS, only, inputs=influence(0.3, 0.1)).rung is Rung.TEMPLATE


def test_a_trial_is_read_all_the_same_and_an_auditor_asks_whether_it_was_one() -> None:
    found = choose_plan(Regime.NORMAL, MIDDLE_MS, ALL, inputs=influence(0.0, 0.0), newest_item=TRIAL)
    assert (found.rung, found.reasons) == (Rung.SPECULATIVE, (PlanReason.NORMAL, PlanReason.TRIAL))
    assert plan_problems(found, Regime.NORMAL, ALL, False, FidelityConfig(), TRIAL) == []
    assert plan_problems(found, Regime.NORMAL, ALL, False, FidelityConfig(), ENCODER_TRIAL) != []
    worth = choose_plan(Regime.NORMAL, MIDDLE_MS, ALL, inputs=influence(0.3, 0.3), newest_item=TRIAL)
    assert worth.reasons == (PlanReason.NORMAL,)


def test_the_encoder_has_trials_of_its_own() -> None:
    weightless = influence(0.0, 0.0, 0.0)
    found = choose_plan(Regime.NORMAL, MIDDLE_MS, ALL, inputs=weightless, newest_item=ENCODER_TRIAL)
    assert (found.rung, found.reasons) == (Rung.TEMPLATE, (PlanReason.NORMAL, PlanReason.LOW_INFLUENCE))
    unscored = influence(0.0, 0.0, msgspec.UNSET)
    found = choose_plan(Regime.NORMAL, MIDDLE_MS, ALL, inputs=unscored, newest_item=ENCODER_TRIAL)
    assert is_silent(found)


def test_trials_are_as_many_as_stated() -> None:
    names = [f"item {number}" for number in range(12_800)]  # a fixed digest: the same on every machine
    assert 70 <= sum(map(is_trial, names)) <= 130  # 100 expected
    assert 700 <= sum(map(is_encoder_trial, names)) <= 900  # 800 expected
    assert not is_trial("")
    assert not is_encoder_trial("")


@pytest.mark.parametrize(("regime", "deadline_ms"), [(Regime.NORMAL, LONG_MS), (Regime.SHOCK, NONE_MS)])
def test_suspicion_comes_before_all_else(regime: Regime, deadline_ms: float) -> None:
    found = choose_plan(regime, deadline_ms, ALL, inputs=LOADED, suspicion=True)
    assert (found.rung, found.reasons) == (Rung.SECURE, (PlanReason.SUSPICION,))


@pytest.mark.parametrize(
    ("inputs", "suspicion", "available", "rung"),
    [
        (CALM_INPUTS, False, set(), Rung.TEMPLATE),
        (CALM_INPUTS, False, {Rung.EDGE, Rung.DEEP}, Rung.EDGE),
        (DIVERGED, False, {Rung.EDGE, Rung.SPECULATIVE}, Rung.SPECULATIVE),
        (LOADED, False, {Rung.SPECULATIVE, Rung.DEEP}, Rung.TEMPLATE),
        (CALM_INPUTS, True, {Rung.EDGE, Rung.SPECULATIVE, Rung.DEEP}, Rung.TEMPLATE),
    ],
)
def test_missing_rung_falls_to_a_lower_one(
    inputs: LadderInputs, suspicion: bool, available: set[Rung], rung: Rung
) -> None:
    found = choose_plan(Regime.NORMAL, LONG_MS, frozenset(available), inputs=inputs, suspicion=suspicion)
    assert found.rung is rung
    assert found.reasons[-1] is PlanReason.UNAVAILABLE


def test_plan_keeps_the_deadline_and_gives_its_reason_in_words() -> None:
    found = choose_plan(Regime.SHOCK, 50.0, frozenset({Rung.TEMPLATE}))
    assert found.deadline_ms == 50.0
    assert found.reason_text == "market in shock, so no model reads"
    assert choose_plan(Regime.NORMAL, LONG_MS, ALL, inputs=LOADED).reason_text == (
        "high load: 9 readings need 720 ms, 800 ms are left"
    )


@pytest.mark.parametrize(
    ("sentence", "reasons"),
    [
        ("normal case", (PlanReason.NORMAL,)),
        ("normal case; the draft is enough", (PlanReason.NORMAL, PlanReason.DRAFT_SUFFICES)),
        ("normal case; speculative is not wired, so edge", (PlanReason.NORMAL, PlanReason.UNAVAILABLE)),
        ("short deadline; the news are worth the best reader", (PlanReason.SHORT_DEADLINE, PlanReason.HIGH_VALUE)),
        ("prepared for FED-0508, cuts by 25 bp", (PlanReason.PREPARED,)),
        ("numeric experts only", ()),
    ],
)  # fmt: skip
def test_an_old_entry_keeps_its_bytes_and_its_sentence_is_read_as_codes(
    sentence: str, reasons: tuple[PlanReason, ...]
) -> None:
    entry = msgspec.json.encode(
        {"rung": "speculative", "reason": sentence, "deadline_ms": 80.0, "then": None}
    )
    found = msgspec.json.decode(entry, type=FidelityPlan)
    assert msgspec.json.encode(found) == entry
    assert (found.reason_text, found.reasons) == (sentence, reasons)
    assert plan_problems(found, Regime.NORMAL, ALL, False, FidelityConfig()) == []


def test_a_plan_is_read_back_from_its_record() -> None:
    found = choose_plan(Regime.NORMAL, LONG_MS, ALL, inputs=LOADED)
    assert msgspec.json.decode(msgspec.json.encode(found), type=FidelityPlan) == found
    assert b'"reason"' not in msgspec.json.encode(found)


@pytest.mark.parametrize(
    "forged",
    [
        {"rung": Rung.SPECULATIVE},
        {"reason_codes": (PlanReason.NORMAL,)},
        {"inputs": CALM_INPUTS},
        {"inputs": msgspec.UNSET},
    ],
)
def test_a_rung_that_does_not_follow_from_the_load_is_found(forged: dict[str, object]) -> None:
    found = msgspec.structs.replace(choose_plan(Regime.NORMAL, LONG_MS, ALL, inputs=LOADED), **forged)
    assert plan_problems(found, Regime.NORMAL, ALL, False, FidelityConfig()) != []


def test_the_plan_of_an_amendment_follows_from_the_first() -> None:
    first = msgspec.json.decode(
        b'{"rung":"template","reason":"prepared for F, up","deadline_ms":80.0,"then":"speculative"}',
        type=FidelityPlan,
    )
    amended = msgspec.json.decode(
        b'{"rung":"speculative","reason":"prepared for F, up; then the news itself","deadline_ms":80.0}',
        type=FidelityPlan,
    )
    assert is_prepared(first)
    assert follows(first, amended)
    assert follows(first, verification_plan(first))
    assert not follows(first, choose_plan(Regime.NORMAL, MIDDLE_MS, ALL))


def test_a_reading_takes_what_the_settings_state_until_a_slower_one_is_measured() -> None:
    now_ns = 0
    times = ReadingTimes(FidelityConfig(), lambda: now_ns)
    assert times.expected_ms(Rung.SPECULATIVE) == 80.0
    with times.measure(Rung.SPECULATIVE, 2):
        now_ns += 600_000_000
    assert times.expected_ms(Rung.SPECULATIVE) == 300.0
    assert times.inputs(1, 250.0).load == pytest.approx(1.2)
    waited: list[float] = []
    for _ in range(6):
        now_ns += 5_000_000_000
        waited.append(times.expected_ms(Rung.SPECULATIVE))
    assert waited[0] == pytest.approx(190.0)
    assert all(later < earlier for earlier, later in pairwise(waited))
    with times.measure(Rung.EDGE, 1):
        now_ns += 5_000_000
    assert times.expected_ms(Rung.EDGE) == 20.0


def test_without_a_clock_nothing_is_measured() -> None:
    times = ReadingTimes(FidelityConfig())
    with times.measure(Rung.EDGE, 1):
        pass
    assert times.inputs(3, 250.0) == LadderInputs(3, 250.0, 20.0, 80.0)


@pytest.mark.parametrize("slow", [1.0, 2.5, 7.0])
@pytest.mark.parametrize("num", [1, 2, 3, 4, 12, 500])
def test_readings_of_an_instant_keep_its_deadline_however_slow_they_are(num: int, slow: float) -> None:
    config, left_ms, used_ms = FidelityConfig(), 250.0, 0.0
    rungs: list[Rung] = []
    for turn in range(num):
        inputs = LadderInputs(num - turn, left_ms, 20.0 * slow, 80.0 * slow)
        chosen = choose_plan(Regime.NORMAL, deadline_of(inputs), ALL, inputs=inputs)
        used_ms += {Rung.TEMPLATE: 0.0, Rung.EDGE: 20.0 * slow}.get(chosen.rung, 80.0 * slow)
        left_ms = left_after(inputs, chosen.rung, config)
        rungs.append(chosen.rung)
    assert len(rungs) == num
    assert used_ms <= 250.0
    assert num < 500 or rungs[-1] is Rung.TEMPLATE


@pytest.mark.parametrize(
    "wrong", [{"edge_ms": 0.0}, {"deep_ms": 1.0}, {"high_load": 1.5}, {"high_divergence": float("nan")}]
)
def test_senseless_limits_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="scheduling"):
        FidelityConfig(**wrong)
