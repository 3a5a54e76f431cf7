"""Each rule objects where it should, and only there; what cannot be judged is withheld."""

from typing import Any

import msgspec
import pytest

from htfi.domain.decision import PolicyOutcome, Regime
from htfi.domain.errors import InvalidInput
from htfi.governance.config import PolicyConfig
from htfi.governance.policy import VERSION, PolicyFacts, apply_rules, rules_of

NAN, INF = float("nan"), float("inf")
SECOND_NS = 10**9
SOUND = PolicyFacts(
    symbol="SPX",
    regime=Regime.NORMAL,
    quantiles=[[-0.02, 0.0, 0.02], [-0.05, 0.0, 0.05]],
    band_width=0.04,
    bar_age_ns=0,
    bar_length_ns=60 * SECOND_NS,
    quote_age_ns=None,
    last_return=0.01,
    last_sigmas=1.0,
    quarantine_share=0.0,
)
JUMP = {"last_return": -0.5, "last_sigmas": -40.0}
CONFIG = PolicyConfig(restricted_symbols=("GME",))


def verdict(**changed: Any) -> tuple[PolicyOutcome, list[str]]:
    found = apply_rules(msgspec.structs.replace(SOUND, **changed), CONFIG, VERSION)
    return found.outcome, [reason.partition(":")[0] for reason in found.reasons]


def test_sound_forecast_is_released_without_remark() -> None:
    assert verdict() == (PolicyOutcome.RELEASE, [])


@pytest.mark.parametrize(
    ("changed", "outcome", "rule"),
    [
        ({"symbol": "GME"}, PolicyOutcome.WITHHOLD, "symbol-permitted"),
        ({"quantiles": []}, PolicyOutcome.WITHHOLD, "forecast-sound"),
        ({"quantiles": [[]]}, PolicyOutcome.WITHHOLD, "forecast-sound"),
        ({"quantiles": [[-0.1, NAN, 0.1]]}, PolicyOutcome.WITHHOLD, "forecast-sound"),
        ({"quantiles": [[-INF, 0.0, INF]]}, PolicyOutcome.WITHHOLD, "forecast-sound"),
        ({"quantiles": [[-0.1, 0.1], [0.2, 0.1]]}, PolicyOutcome.WITHHOLD, "forecast-sound"),
        ({"last_return": -0.5, "last_sigmas": -40.0}, PolicyOutcome.WITHHOLD, "price-jump"),
        ({"last_return": NAN, "last_sigmas": NAN}, PolicyOutcome.WITHHOLD, "price-jump"),
        ({**JUMP, "quote_gap": -0.2}, PolicyOutcome.WITHHOLD, "price-jump"),
        ({**JUMP, "quote_gap": NAN}, PolicyOutcome.WITHHOLD, "price-jump"),
        ({"quote_age_ns": 61 * SECOND_NS}, PolicyOutcome.CAUTION, "stale-quote"),
        ({"bar_age_ns": 61 * SECOND_NS}, PolicyOutcome.CAUTION, "stale-bar"),
        ({"bar_age_ns": -2 * SECOND_NS}, PolicyOutcome.WITHHOLD, "look-ahead"),
        ({"band_width": 0.51}, PolicyOutcome.CAUTION, "band-width"),
        ({"band_width": NAN}, PolicyOutcome.CAUTION, "band-width"),
        ({"regime": Regime.SHOCK}, PolicyOutcome.CAUTION, "shock-regime"),
        ({"quarantine_share": 0.06}, PolicyOutcome.CAUTION, "source-quality"),
        ({"quarantine_share": NAN}, PolicyOutcome.CAUTION, "source-quality"),
    ],
)
def test_rule_objects(changed: dict[str, Any], outcome: PolicyOutcome, rule: str) -> None:
    assert verdict(**changed) == (outcome, [rule])


@pytest.mark.parametrize(
    "changed",
    [
        {"last_return": 0.1, "last_sigmas": 40.0},  # far, but within what markets do
        {**JUMP, "quote_gap": 0.12},  # the quotes have followed the price
        {"last_return": 0.5, "last_sigmas": 10.0},  # large, but so is its volatility
        {"last_return": None, "last_sigmas": None},
        {"quote_age_ns": 60 * SECOND_NS},
        {"bar_age_ns": 60 * SECOND_NS},
        {"bar_age_ns": -1},
        {"bar_length_ns": 0, "bar_age_ns": 5 * SECOND_NS},
        {"quantiles": [[0.0, 0.0, 0.0]]},
    ],
)
def test_rule_is_content_within_its_limit(changed: dict[str, Any]) -> None:
    assert verdict(**changed) == (PolicyOutcome.RELEASE, [])


def test_most_severe_outcome_wins_and_every_reason_is_kept() -> None:
    found = verdict(regime=Regime.SHOCK, quantiles=[[1.0, 0.0]], band_width=0.6)
    assert found == (PolicyOutcome.WITHHOLD, ["forecast-sound", "band-width", "shock-regime"])


def test_reasons_are_stable_codes_with_words() -> None:
    found = apply_rules(msgspec.structs.replace(SOUND, quote_age_ns=75_200_000_000), CONFIG, VERSION)
    assert found.reasons == ["stale-quote: the newest quote is 75.2 s old, limit 60 s"]


@pytest.mark.parametrize(
    "field", ["quantiles", "band_width", "bar_age_ns", "quarantine_share", "last_sigmas"]
)
def test_fact_of_the_wrong_kind_is_withheld_not_passed(field: str) -> None:
    broken = msgspec.structs.replace(SOUND, **{field: "unknown"})
    found = apply_rules(broken, CONFIG, VERSION)
    assert found.outcome is PolicyOutcome.WITHHOLD
    assert any(reason.endswith("could not be evaluated") or "quantile" in reason for reason in found.reasons)


def test_symbol_off_the_list_is_withheld_and_an_empty_list_allows_nothing() -> None:
    assert (
        apply_rules(SOUND, PolicyConfig(allowed_symbols=("SPX", "VIX")), VERSION).outcome
        is PolicyOutcome.RELEASE
    )
    assert (
        apply_rules(SOUND, PolicyConfig(allowed_symbols=("VIX",)), VERSION).outcome is PolicyOutcome.WITHHOLD
    )
    assert apply_rules(SOUND, PolicyConfig(allowed_symbols=()), VERSION).outcome is PolicyOutcome.WITHHOLD
    restricted = PolicyConfig(allowed_symbols=("SPX",), restricted_symbols=("SPX",))
    assert apply_rules(SOUND, restricted, VERSION).outcome is PolicyOutcome.WITHHOLD


IDS_OF_2 = [
    "symbol-permitted",
    "forecast-sound",
    "look-ahead",
    "price-jump",
    "stale-quote",
    "stale-bar",
    "band-width",
    "shock-regime",
    "source-quality",
]


@pytest.mark.parametrize("version", ["policy/1", "policy/2"])
def test_rule_ids_of_a_version_stay_as_ledgers_quote_them(version: str) -> None:
    assert [rule.id for rule in rules_of(version)] == IDS_OF_2


def test_a_jump_that_quotes_confirm_is_still_withheld_where_version_1_judged_it() -> None:
    confirmed = msgspec.structs.replace(SOUND, **JUMP, quote_gap=0.0)
    assert apply_rules(confirmed, CONFIG, "policy/1").outcome is PolicyOutcome.WITHHOLD
    assert apply_rules(confirmed, CONFIG, "policy/2").outcome is PolicyOutcome.RELEASE
    (reason,) = apply_rules(confirmed, CONFIG, "policy/1").reasons
    assert reason == (
        "price-jump: a log return of 0.5, 40 sigmas, that nothing confirms: a bad print is suspected"
    )


@pytest.mark.parametrize("version", ["policy/0", "policy/99", "policy", "rationale/1", ""])
def test_a_version_that_is_not_known_is_refused(version: str) -> None:
    with pytest.raises(InvalidInput, match="not known here"):
        rules_of(version)


@pytest.mark.parametrize(
    "wrong", [{"max_band_width": 0.0}, {"max_jump_sigmas": NAN}, {"max_quarantine_share": 1.1}]
)
def test_senseless_limits_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        PolicyConfig(**wrong)  # type: ignore[arg-type]
