"""What trips circuit breakers, at which scope, how they recover, and what people must do."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace as replace_struct

from breaker_points import SIGMA, calm_point, usual_view
from htfi.domain.decision import Decision
from htfi.domain.errors import InvalidInput
from htfi.domain.governance import BreakerState, parse_scope
from htfi.domain.time import NS_PER_DAY
from htfi.governance.breakers.config import BreakerConfig, BreakerLimits
from htfi.governance.breakers.observations import NewsObservation, PointObservation, observe_decisions
from htfi.governance.breakers.panel import BreakerPanel
from htfi.governance.breakers.states import BreakerChange

NAMES = [f"S{place:02d}/1d" for place in range(20)]
DESKS = {f"S{place:02d}": ("rates" if place < 10 else "equities",) for place in range(20)}
NUM_CALM = 100

MakeDecisions = Callable[..., list[Decision]]
MakePoint = Callable[[int, np.random.Generator], PointObservation]


def _calm(number: int, rng: np.random.Generator) -> PointObservation:
    return calm_point(number, rng, NAMES)


def _run(
    panel: BreakerPanel, make: MakePoint, num: int, first: int = NUM_CALM + 1, seed: int = 2
) -> list[BreakerChange]:
    """The changes of `num` points that follow each other."""
    rng = np.random.default_rng(seed)
    return [change for step in range(num) for change in panel.observe(make(first + step, rng))]


@lru_cache(maxsize=1)
def _warm_state() -> dict[str, Any]:
    panel = BreakerPanel(desks_of=DESKS)
    assert _run(panel, _calm, NUM_CALM, first=1, seed=1) == []
    return panel.state()


def _warm_panel(config: BreakerConfig | None = None) -> BreakerPanel:
    panel = BreakerPanel(config, DESKS)
    panel.restore(_warm_state())
    return panel


def _opened(changes: list[BreakerChange]) -> set[tuple[str, str]]:
    return {(one.breaker, one.scope) for one in changes if one.state is BreakerState.OPEN}


def _wild(number: int, rng: np.random.Generator) -> PointObservation:
    """Returns of one desk alone that are four times what was forecast."""
    returns = SIGMA * rng.normal(size=len(NAMES))
    returns[:10] *= 4.0
    return calm_point(number, rng, NAMES, returns)


def test_outcomes_beyond_the_bands_open_the_desk_that_they_befall_and_no_other():
    opened = _opened(_run(_warm_panel(), _wild, 15))
    assert ("bands_left", "desk:rates") in opened
    assert not any("equities" in scope for _, scope in opened)


def test_one_frozen_series_opens_that_series_alone():
    last = {"range": 0.0}

    def frozen(number: int, rng: np.random.Generator) -> PointObservation:
        point = _calm(number, rng)
        last["range"] = last["range"] or float(point.range_last[3])
        point.log_return[3], point.range_last[3] = 0.0, last["range"]
        return point

    assert _opened(_run(_warm_panel(), frozen, 12)) == {("frozen_feed", "series:S03/1d")}


def test_a_feed_whose_bars_often_repeat_is_not_frozen():
    """A series that trades every third day repeats its bar two days in three, from the first day on."""

    def illiquid(number: int, rng: np.random.Generator) -> PointObservation:
        point = _calm(number, rng)
        point.range_last[5] = 0.0
        if number % 3:
            point.log_return[5] = 0.0
        return point

    panel = BreakerPanel()
    changes = _run(panel, illiquid, 250, first=1)
    late = [one for one in changes if one.at_ns > 100 * NS_PER_DAY and one.state is BreakerState.OPEN]
    assert late == []


def test_prices_that_jump_and_come_back_are_unconfirmed():
    def poisoned(number: int, rng: np.random.Generator) -> PointObservation:
        returns = SIGMA * rng.normal(size=len(NAMES))
        returns[7] = (0.2, -0.2)[number % 2]
        return calm_point(number, rng, NAMES, returns)

    assert ("price_unconfirmed", "series:S07/1d") in _opened(_run(_warm_panel(), poisoned, 12))


def test_a_jump_that_stays_is_confirmed():
    def jumped(number: int, rng: np.random.Generator) -> PointObservation:
        returns = SIGMA * rng.normal(size=len(NAMES))
        returns[7] = 0.2 if number % 9 == 0 else returns[7]
        return calm_point(number, rng, NAMES, returns)

    assert not any(name == "price_unconfirmed" for name, _ in _opened(_run(_warm_panel(), jumped, 40)))


def test_quotes_far_from_the_price_do_not_confirm_it():
    def quoted(number: int, rng: np.random.Generator) -> PointObservation:
        point = _calm(number, rng)
        point.quote_gap[2] = 0.3
        return point

    assert _opened(_run(_warm_panel(), quoted, 5)) == {("price_unconfirmed", "series:S02/1d")}


@pytest.mark.parametrize("shift_days", [-5, 5])
def test_a_clock_that_steps_opens_its_desk(shift_days: int):
    def stepped(number: int, rng: np.random.Generator) -> PointObservation:
        return calm_point(number, rng, NAMES, end_ns=(number + shift_days) * NS_PER_DAY)

    opened = _opened(_run(_warm_panel(), stepped, 8))
    assert ("clock", "desk:rates") in opened
    assert {name for name, _ in opened} == {"clock"}


def test_a_crash_of_all_series_opens_their_desks():
    def crash(number: int, rng: np.random.Generator) -> PointObservation:
        return calm_point(number, rng, NAMES, np.full(len(NAMES), -12.0 * SIGMA))

    assert ("market_crash", "desk:equities") in _opened(_run(_warm_panel(), crash, 4))


def test_two_experts_with_one_forecast_are_identical():
    def identical(number: int, rng: np.random.Generator) -> PointObservation:
        point = _calm(number, rng)
        point.experts[:, 2] = point.experts[:, 0]
        return point

    assert ("experts_identical", "desk:rates") in _opened(_run(_warm_panel(), identical, 8))


def test_an_expert_far_from_the_others_opens_that_model():
    def far(number: int, rng: np.random.Generator) -> PointObservation:
        point = _calm(number, rng)
        point.experts[:, 1] *= 9.0
        return point

    assert _opened(_run(_warm_panel(), far, 12)) == {("model_disagrees", "model:market_har")}


def test_an_expert_without_forecasts_yet_disagrees_with_none():
    def silent(number: int, rng: np.random.Generator) -> PointObservation:
        point = _calm(number, rng)
        point.experts[:, 1] = np.nan
        return point

    assert _run(_warm_panel(), silent, 20) == []


def test_another_version_stops_the_firm_unless_a_bundle_brings_it():
    def version(number: int, rng: np.random.Generator) -> PointObservation:
        return calm_point(number, rng, NAMES, models={"fused": "3"})

    (change,) = _run(_warm_panel(), version, 5)
    assert (change.breaker, change.scope, change.state) == ("model_swapped", "firm", BreakerState.OPEN)
    assert "fused was 2 and is 3" in change.evidence

    def named(number: int, rng: np.random.Generator) -> PointObservation:
        return calm_point(number, rng, NAMES, models={"fused": "3"}, bundle="b2")

    assert _run(_warm_panel(), named, 5) == []


def _with_view(number: int, rng: np.random.Generator) -> PointObservation:
    return calm_point(number, rng, NAMES, views={number % 20: usual_view(rng, f"n{number}")})


@lru_cache(maxsize=1)
def _state_with_views() -> dict[str, Any]:
    panel = BreakerPanel(desks_of=DESKS)
    assert _run(panel, _with_view, 150, first=1, seed=4) == []
    return panel.state()


def _panel_of_views() -> BreakerPanel:
    panel = BreakerPanel(desks_of=DESKS)
    panel.restore(_state_with_views())
    return panel


@pytest.mark.parametrize(
    ("breaker", "change", "answer"),
    [
        ("draft_acceptance", {}, {"num_accepted": 0}),
        ("draft_runaway", {}, {"num_drafted": 500, "num_accepted": 350}),
        ("answers_shift", {}, {"num_tokens": 96, "entropy_nats": 0.5}),
        ("views_shift", {"direction": 1.0, "shift_sigmas": 4.5, "confidence": 0.95}, {}),
    ],
)
def test_a_reader_that_changes_opens_its_model(
    breaker: str, change: dict[str, float], answer: dict[str, float]
):
    def changed(number: int, rng: np.random.Generator) -> PointObservation:
        view = usual_view(rng, f"n{number}")
        assert view.answer is not None
        view = replace_struct(view, **change, answer=replace_struct(view.answer, **answer))
        return calm_point(number, rng, NAMES, views={number % 20: view})

    opened = _opened(_run(_panel_of_views(), changed, 60, first=151))
    assert (breaker, "model:target") in opened


def test_a_view_on_the_same_news_that_turns_again_and_again_flips():
    def turning(number: int, rng: np.random.Generator) -> PointObservation:
        view = replace_struct(usual_view(rng, "same"), direction=(-1.0, 1.0)[number % 2])
        return calm_point(number, rng, NAMES, views={3: view})

    assert ("views_flip", "model:target") in _opened(_run(_panel_of_views(), turning, 20, first=151))


def test_one_view_on_whatever_news_repeats():
    def stuck(number: int, rng: np.random.Generator) -> PointObservation:
        view = replace_struct(usual_view(rng, f"n{number}"), direction=0.0, shift_sigmas=0.0)
        return calm_point(number, rng, NAMES, views={number % 20: view})

    assert ("views_repeat", "model:target") in _opened(_run(_panel_of_views(), stuck, 30, first=151))


def test_sure_views_that_prove_wrong_part_from_their_confidence():
    panel, rng = _panel_of_views(), np.random.default_rng(3)
    changes: list[BreakerChange] = []
    for number in range(151, 300):
        view = replace_struct(usual_view(rng, f"n{number}"), direction=1.0, confidence=0.9)
        returns = SIGMA * rng.normal(size=len(NAMES))
        returns[(number - 1) % 20] = -abs(returns[(number - 1) % 20])
        changes += panel.observe(calm_point(number, rng, NAMES, returns, {number % 20: view}))
    assert ("confidence_apart", "model:target") in _opened(changes)


def test_contradicting_sources_open_the_series():
    def contradicting(number: int, rng: np.random.Generator) -> PointObservation:
        view = replace_struct(usual_view(rng, f"n{number}"), contradiction=0.9)
        return calm_point(number, rng, NAMES, views={4: view})

    assert ("sources_contradict", "series:S04/1d") in _opened(
        _run(_panel_of_views(), contradicting, 30, first=151)
    )


def _item(number: int, is_quarantined: bool = False, num_alike: int = 1) -> NewsObservation:
    return NewsObservation(number, f"i{number}", "feed", (), is_quarantined, 1.0, f"i{number}", num_alike)


def test_quarantine_that_swells_stops_the_firm():
    panel = BreakerPanel()
    assert [
        change for number in range(200) for change in panel.observe(_item(number, number % 40 == 0))
    ] == []
    changes = [
        change for number in range(200, 240) for change in panel.observe(_item(number, is_quarantined=True))
    ]
    assert _opened(changes) == {("quarantine_swells", "firm")}


@pytest.mark.parametrize(("num_alike", "is_found"), [(1, True), (3, False)])
def test_one_headline_that_moves_many_series_needs_confirmation(num_alike: int, is_found: bool):
    panel, rng = _panel_of_views(), np.random.default_rng(8)
    panel.observe(_item(7, num_alike=num_alike))
    views = {place: replace_struct(usual_view(rng, "i7"), moved=0.1, answer=None) for place in range(10)}
    opened = _opened(panel.observe(calm_point(151, rng, NAMES, views=views)))
    assert (("headline_reach", "desk:rates") in opened) is is_found
    assert ("headline_reach", "desk:equities") not in opened


def test_a_headline_may_move_the_series_that_it_names():
    panel, rng = _panel_of_views(), np.random.default_rng(8)
    symbols = tuple(f"S{place:02d}" for place in range(10))
    panel.observe(replace_struct(_item(7), symbols=symbols))
    views = {place: replace_struct(usual_view(rng, "i7"), moved=0.1, answer=None) for place in range(10)}
    assert not any(
        name == "headline_reach"
        for name, _ in _opened(panel.observe(calm_point(151, rng, NAMES, views=views)))
    )


def test_an_open_breaker_is_half_open_after_its_cool_down_and_closes_without_a_trip():
    panel, number = _warm_panel(), NUM_CALM
    while ("bands_left", "desk:rates") not in panel.not_closed:
        number += 1
        _run(panel, _wild, 1, first=number, seed=number)
        assert number < NUM_CALM + 20
    changes = [one for one in _run(panel, _calm, 20, first=number + 1) if one.scope == "desk:rates"]
    assert [one.state for one in changes] == [BreakerState.HALF_OPEN, BreakerState.CLOSED]


def test_a_half_open_breaker_opens_again_where_the_failure_goes_on():
    panel = _warm_panel()
    states = [
        one.state
        for one in _run(panel, _wild, 60)
        if (one.breaker, one.scope) == ("bands_left", "desk:rates")
    ]
    assert states[0] is BreakerState.OPEN
    assert BreakerState.CLOSED not in states


def test_a_breaker_of_the_firm_waits_for_a_person():
    panel = _warm_panel()

    def version(number: int, rng: np.random.Generator) -> PointObservation:
        return calm_point(number, rng, NAMES, models={"fused": "3"})

    _run(panel, version, 60)
    assert panel.not_closed == {("model_swapped", "firm"): BreakerState.OPEN}
    (change,) = panel.reenable("firm", "A. Officer", "the release was planned", 1)
    assert change.state is BreakerState.CLOSED
    assert "A. Officer" in change.evidence
    assert "the release was planned" in change.evidence
    assert panel.not_closed == {}


def test_reenabling_one_breaker_leaves_the_others_of_its_scope():
    panel = _warm_panel()
    _run(panel, _wild, 15)

    def crash(number: int, rng: np.random.Generator) -> PointObservation:
        return calm_point(number, rng, NAMES, np.full(len(NAMES), -30.0 * SIGMA))

    _run(panel, crash, 5, first=NUM_CALM + 16)
    before = {name for name, scope in panel.not_closed if scope == "desk:rates"}
    panel.reenable("desk:rates", "A. Officer", "known", 1, breaker="market_crash")
    assert before - {name for name, scope in panel.not_closed if scope == "desk:rates"} == {"market_crash"}


def test_a_breaker_that_is_off_never_trips():
    off = BreakerConfig(bands_left=BreakerLimits(("series", "desk"), is_on=False))
    assert not any(name == "bands_left" for name, _ in _opened(_run(_warm_panel(off), _wild, 15)))


def test_scopes_of_changes_are_those_that_stops_know():
    changes = _run(_warm_panel(), _wild, 15)
    assert changes
    assert [str(parse_scope(one.scope)) for one in changes] == [one.scope for one in changes]


def test_series_without_a_desk_are_of_the_default_one():
    assert ("bands_left", "desk:default") in _opened(_run(BreakerPanel(), _wild, 20))


def test_decisions_between_bars_have_no_outcome():
    panel, rng = _warm_panel(), np.random.default_rng(9)
    before = panel.state()["wealth"]
    point = _calm(NUM_CALM + 1, rng)
    between = PointObservation(
        **{name: getattr(point, name) for name in PointObservation.__slots__ if name != "is_between_bars"},
        is_between_bars=True,
    )
    panel.observe(between)
    assert str(panel.state()["wealth"]) == str(before)


def test_decisions_of_an_instant_are_observed_as_columns(make_decisions: MakeDecisions):
    decisions = make_decisions(num=2, symbols=("SPX", "NDX"))[2:]
    point = observe_decisions(decisions, "b1")
    assert list(point.series) == ["SPX/1d", "NDX/1d"]
    assert point.quantiles.tolist() == [one.forecast.quantiles for one in decisions]
    assert point.bar_end_ns.tolist() == [one.circumstances.bar_end_ns for one in decisions]
    assert point.experts.shape == (2, len(point.expert_names), len(point.horizons), len(point.levels))
    assert point.bundle == "b1"


def test_decisions_of_several_instants_or_of_one_series_twice_are_refused(make_decisions: MakeDecisions):
    decisions = make_decisions(num=2)
    with pytest.raises(InvalidInput, match="one instant"):
        observe_decisions(decisions)
    with pytest.raises(InvalidInput, match="once"):
        observe_decisions([decisions[0], decisions[0]])


@pytest.mark.parametrize(
    "make",
    [
        lambda: BreakerLimits(("planet",)),
        lambda: BreakerLimits(()),
        lambda: BreakerLimits(false_alarms_a_year=0.0),
        lambda: BreakerConfig().of("nothing"),
    ],
)
def test_limits_out_of_bounds_are_refused_in_one_line(make: Callable[[], object]):
    with pytest.raises(InvalidInput) as refused:
        make()
    assert "\n" not in str(refused.value)
