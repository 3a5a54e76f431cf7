"""What is decided for all series at once is, to the last byte, what is decided for each by itself."""

import random
from collections.abc import Mapping, Sequence
from math import exp, inf, nan

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htfi.domain.decision import PolicyOutcome, PolicyVerdict, Regime
from htfi.domain.errors import IntegrityError
from htfi.domain.events import Bar, TimePassed
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.batch import ForecastBatch
from htfi.governance import policy
from htfi.governance.config import PolicyConfig
from htfi.governance.policy import (
    NUM_VERSIONS,
    RULES,
    PolicyColumns,
    PolicyFacts,
    PolicyRule,
    apply_rules,
    judge_rows,
    rules_of,
)
from htfi.pipeline import decide
from htfi.pipeline.decided import DecidedSeries
from htfi.pipeline.loop import DecisionLoop
from htfi.pipeline.record.entry import decode_entry, encode_entry
from htfi.pipeline.series import DecisionPoint, SeriesContext
from htfi.wiring.settings import load_settings, override
from memory_run import loop_over

NUM_DAYS = 40
START_NS = 1_600_041_600 * 10**9
NO_OBJECTION = PolicyVerdict(PolicyOutcome.RELEASE, [])

# --- entries


def decided(loop: DecisionLoop, point: DecisionPoint) -> list[DecidedSeries]:
    """What is decided on the series of a point, all of which numbers alone decide."""
    found = loop.decide(point)
    assert found is not None
    assert not found.contexts
    return found.decided


def ready_loop(*symbols: str, late: Mapping[str, int] = {}) -> tuple[DecisionLoop, list[Bar]]:
    """A loop with history enough, and the next bar of each symbol; `late` are the days on which some have their first
    bar.
    """
    chosen = override(load_settings(environment={}), "policy", restricted_symbols=("B",))
    loop, _, _ = loop_over([], settings=chosen)
    rng, closes = random.Random(1), dict.fromkeys(symbols, 100.0)
    bars: list[Bar] = []
    for day in range(NUM_DAYS):
        start_ns, end_ns = START_NS + day * NS_PER_DAY, START_NS + (day + 1) * NS_PER_DAY
        bars = []
        traded = [symbol for symbol in symbols if day >= late.get(symbol, 0)]
        for row, symbol in enumerate(traded, start=day * len(symbols) + 1):
            opened = closes[symbol]
            close = closes[symbol] = opened * exp(rng.gauss(0.0, 0.01))
            high, low = 1.001 * max(opened, close), 0.999 * min(opened, close)
            bars.append(
                Bar(end_ns, end_ns, "news", row, symbol, "1d", start_ns, end_ns, opened, high, low, close)
            )
        if day < NUM_DAYS - 1:
            for bar in bars:
                loop.step(bar)
            loop.step(TimePassed(end_ns + 1))
    return loop, bars


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(NAMES, min_size=1, max_size=3, unique=True),
    st.sampled_from(["news", "normal", "htfi", "0" * 64]),
)
def test_entries_made_together_are_those_made_alone(names: list[str], odd: str) -> None:
    symbols = list(dict.fromkeys([*names, odd, "B"]))
    loop, bars = ready_loop(*symbols)
    found = decided(loop, DecisionPoint(bars[0].available_at_ns, bars))
    assert len(found) == len(symbols)
    assert {one.verdict.outcome for one in found} == {PolicyOutcome.RELEASE, PolicyOutcome.WITHHOLD}
    for one in found:
        assert one.entry == encode_entry(one.decision)
        assert decode_entry(one.entry) == one.worded()
        assert one.central_band == one.decision.forecast.central_band
        assert one.quantiles.tolist() == one.decision.forecast.quantiles


def test_series_that_an_expert_has_no_forecast_of_are_decided_as_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    symbols, late = ("B", "A", "D", "C", "E"), {"A": NUM_DAYS - 20, "C": NUM_DAYS - 21, "E": NUM_DAYS - 20}
    loop, bars = ready_loop(*symbols, late=late)
    together = decided(loop, DecisionPoint(bars[0].available_at_ns, bars))

    def is_never_numeric(_: SeriesContext) -> bool:
        return False

    monkeypatch.setattr(decide, "is_numeric", is_never_numeric)
    loop, bars = ready_loop(*symbols, late=late)
    monkeypatch.setattr(loop.components.prepared, "is_on", True)  # so that each series has its context
    monkeypatch.setattr(loop.components.prepared, "serve", lambda request, _: request)
    found = loop.decide(DecisionPoint(bars[0].available_at_ns, bars))
    assert found is not None
    assert len(found.contexts) == len(symbols)
    alone = found.decided
    assert [one.decision.symbol for one in together] == list(symbols)
    assert len({len(one.decision.forecast.weights) for one in together}) > 1
    assert [one.decision for one in together] == [one.decision for one in alone]
    assert [one.entry for one in together] == [one.entry for one in alone]


def test_a_number_that_is_not_finite_is_refused_by_the_name_of_its_decision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, bars = ready_loop("A", "C")
    forecaster = loop.components.forecaster
    read = forecaster.forecast_bars

    def forecasts(bars: Sequence[Bar]) -> ForecastBatch:
        found = read(bars)
        found.calibration[1, 0] = nan
        return found

    monkeypatch.setattr(forecaster, "forecast_bars", forecasts)
    with pytest.raises(IntegrityError, match=r"^C/1d@.*not finite"):
        loop.decide(DecisionPoint(bars[0].available_at_ns, bars))


# --- verdicts

SIZES = st.sampled_from([0.0, -0.0, 0.01, -0.01, 0.1, 0.25, 0.5, 0.51, 5.0, -40.0, 1e9, inf, -inf, nan])
LENGTHS = st.sampled_from([0, 1, 60, 61, 3_600, 86_400, 10**9])


@st.composite
def facts(draw: st.DrawFn) -> PolicyFacts:
    optional = st.none() | SIZES
    return PolicyFacts(
        symbol=draw(st.sampled_from(["SPX", "GME", "B"])),
        regime=draw(st.sampled_from(Regime)),
        quantiles=draw(st.lists(st.lists(SIZES, min_size=3, max_size=3), min_size=2, max_size=2)),
        band_width=draw(SIZES),
        bar_age_ns=draw(st.sampled_from([-1, 1])) * draw(LENGTHS) * 10**9,
        bar_length_ns=draw(LENGTHS) * 10**9,
        quote_age_ns=draw(st.none() | LENGTHS.map(lambda length: length * 10**9)),
        last_return=draw(optional),
        last_sigmas=draw(optional),
        quarantine_share=draw(SIZES),
        quote_gap=draw(optional),
    )


def columns_of(rows: list[PolicyFacts]) -> PolicyColumns:
    return PolicyColumns(
        symbols=[row.symbol for row in rows],
        is_shock=np.array([row.regime is Regime.SHOCK for row in rows]),
        quantiles=np.array([row.quantiles for row in rows]),
        band_width=np.array([row.band_width for row in rows]),
        bar_age_ns=np.array([row.bar_age_ns for row in rows], np.float64),
        bar_length_ns=np.array([row.bar_length_ns for row in rows], np.float64),
        quote_age_ns=np.array([row.quote_age_ns or 0 for row in rows], np.float64),
        last_return=np.array([0.0 if row.last_return is None else row.last_return for row in rows]),
        last_sigmas=np.array([0.0 if row.last_sigmas is None else row.last_sigmas for row in rows]),
        quarantine_share=rows[0].quarantine_share,
    )


@settings(max_examples=300)
@given(
    st.lists(facts(), min_size=1, max_size=6),
    st.sampled_from([(), ("GME",)]),
    st.sampled_from([("*",), ("B",)]),
)
def test_rows_are_judged_as_each_alone(
    rows: list[PolicyFacts], restricted: tuple[str, ...], allowed: tuple[str, ...]
) -> None:
    rows = [msgspec.structs.replace(row, quarantine_share=rows[0].quarantine_share) for row in rows]
    config = PolicyConfig(restricted_symbols=restricted, allowed_symbols=allowed)
    versions = [f"policy/{version}" for version in range(1, NUM_VERSIONS + 1)]
    alone = [[apply_rules(row, config, version) for row in rows] for version in versions]
    columns = columns_of(rows)
    together = [judge_rows(columns, rows.__getitem__, config, version) for version in versions]
    assert [[found.get(row, NO_OBJECTION) for row in range(len(rows))] for found in together] == alone


def test_every_rule_clears_sound_rows_by_itself() -> None:
    """So that no decision is judged by itself without need."""
    sound = PolicyFacts(
        symbol="B", regime=Regime.CALM, quantiles=[[-0.1, 0.0, 0.1]], band_width=0.2, bar_age_ns=0,
        bar_length_ns=NS_PER_DAY, quote_age_ns=None, last_return=None, last_sigmas=None, quarantine_share=0.0,
    )  # fmt: skip
    columns, config = columns_of([sound]), PolicyConfig()
    assert all(rule.clears is not None and bool(np.all(rule.clears(columns, config))) for rule in RULES)


def test_a_rule_without_columns_judges_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = PolicyRule("odd", PolicyOutcome.CAUTION, lambda facts, _: "odd" if facts.symbol == "B" else None)

    def extended(version: str) -> tuple[PolicyRule, ...]:
        return (*rules_of(version), rule)

    monkeypatch.setattr(policy, "rules_of", extended)
    row = PolicyFacts(
        symbol="A", regime=Regime.CALM, quantiles=[[0.0]], band_width=0.2, bar_age_ns=0,
        bar_length_ns=NS_PER_DAY, quote_age_ns=None, last_return=None, last_sigmas=None, quarantine_share=0.0,
    )  # fmt: skip
    rows = [row, msgspec.structs.replace(row, symbol="B")]
    found = judge_rows(columns_of(rows), rows.__getitem__, PolicyConfig(), "policy/2")
    assert found == {0: NO_OBJECTION, 1: PolicyVerdict(PolicyOutcome.CAUTION, ["odd: odd"])}
