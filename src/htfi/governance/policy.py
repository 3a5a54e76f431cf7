"""Judges a forecast before it is recorded, by typed rules with stable ids. Pure: pipeline and auditors call `judge`.

A rule returns the text of its objection, or None. Comparisons ask whether a fact is within its limit, so that NaN is
not; a rule that cannot be evaluated withholds. Nothing unknown passes. `RULES` is a table by version: a decision names
the version that judged it, and is judged again by that one for ever. docs/extend-a-policy-rule.md says how a rule is
added.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from types import MappingProxyType

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from htfi.domain.decision import BarCircumstances, Decision, PolicyOutcome, PolicyVerdict, Regime
from htfi.domain.errors import InvalidInput
from htfi.domain.governance import GovernanceFacts
from htfi.domain.time import NS_PER_S
from htfi.governance.config import ANY_SYMBOL, PolicyConfig

# Quotes that have followed a jump confirm it: their mid lies no farther from the new price than this share of the jump.
MAX_QUOTE_GAP_SHARE = 0.25
_MAX_SUMMED = 1e300  # a few numbers below it have a finite sum


class PolicyFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the rules judge by: values of one decision, all of them in its record.

    Shapes: quantiles [H, Q], the first row one bar ahead. Units: log returns; ages and lengths in ns; sigmas
    in the standard deviation expected of the bar. `quote_age_ns` is None for a series that has no quotes,
    `last_return` and `last_sigmas` before a second bar; `quote_gap` is (price − mid) / mid of its quotes, None where no
    sound ones came since the bar began. `quarantine_share` is the part of the sources' latest rows set aside.
    `features` are those of the decision, by name (docs/market.md).
    """

    symbol: str
    regime: Regime
    quantiles: Sequence[Sequence[float]]
    band_width: float
    bar_age_ns: int
    bar_length_ns: int
    quote_age_ns: int | None
    last_return: float | None
    last_sigmas: float | None
    quarantine_share: float
    quote_gap: float | None = None
    features: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PolicyColumns:
    """What the rules judge n decisions of one instant by, as arrays: units as in `PolicyFacts`.

    Shapes: all [n] but quantiles [n, H, Q]. Where `PolicyFacts` has None, 0 stands. What confirms a jump is not here.
    """

    symbols: Sequence[str]
    is_shock: NDArray[np.bool_]
    quantiles: NDArray[np.float64]
    band_width: NDArray[np.float64]
    bar_age_ns: NDArray[np.float64]
    bar_length_ns: NDArray[np.float64]
    quote_age_ns: NDArray[np.float64]
    last_return: NDArray[np.float64]
    last_sigmas: NDArray[np.float64]
    quarantine_share: float


class PolicyRule(msgspec.Struct, frozen=True, gc=False):
    """One rule: its stable id, what its objection means, its check, and the first and last version that has it.

    `clears` tells from columns [n] where the check surely has no objection; without it every decision is checked.
    """

    id: str
    outcome: PolicyOutcome
    check: Callable[[PolicyFacts, PolicyConfig], str | None]
    since: int = 1
    until: int | None = None  # None: it still applies
    clears: Callable[[PolicyColumns, PolicyConfig], NDArray[np.bool_] | bool] | None = None


_FROM_NUMBERS_ALONE = "governance: the deadline for people passed, so this is the forecast from numbers alone"


def judge(decision: Decision, config: PolicyConfig) -> PolicyVerdict:
    """The verdict on a decision, by the version of the rules that it names and by what governance holds back.

    Raises: InvalidInput for an unknown version.
    """
    verdict = apply_rules(facts_of(decision), config, decision.models["policy"])
    return with_holds(verdict, decision.governance)


def with_holds(verdict: PolicyVerdict, facts: GovernanceFacts | UnsetType) -> PolicyVerdict:
    """The verdict, withheld where governance holds the decision back; its reasons come last, as 'governance: words'.

    Where the view alone is held back, the decision passes with caution.
    """
    if facts is UNSET:
        return verdict
    if facts.release is not UNSET and not facts.release.approvers:
        outcome = max(verdict.outcome, PolicyOutcome.CAUTION, key=tuple(PolicyOutcome).index)
        verdict = PolicyVerdict(outcome, [*verdict.reasons, _FROM_NUMBERS_ALONE])
    if not (facts.holds or facts.is_view_set_aside):
        return verdict
    held = [f"governance: {hold.words}" for hold in facts.holds]
    if facts.view_holds is not UNSET:
        held += [
            f"governance: {hold.words}: the view does not count, the numbers alone decide"
            for hold in facts.view_holds
        ]
    if facts.holds:
        return PolicyVerdict(PolicyOutcome.WITHHOLD, [*verdict.reasons, *held])
    outcome = PolicyOutcome.CAUTION if verdict.outcome is PolicyOutcome.RELEASE else verdict.outcome
    return PolicyVerdict(outcome, [*verdict.reasons, *held])


def facts_of(decision: Decision) -> PolicyFacts:
    """What the rules judge a decision by."""
    bar, features = decision.circumstances, decision.features
    low, high = decision.forecast.central_band
    return PolicyFacts(
        symbol=decision.symbol,
        regime=decision.regime,
        quantiles=decision.forecast.quantiles,
        band_width=high - low,
        bar_age_ns=decision.as_of_ns - bar.bar_end_ns,
        bar_length_ns=bar.bar_end_ns - bar.bar_start_ns,
        quote_age_ns=bar.quote_age_ns,
        last_return=features.get("return_last"),
        last_sigmas=features.get("return_sigmas"),
        quarantine_share=bar.quarantine_share,
        quote_gap=quote_gap(decision.last_price, bar),
        features=features,
    )


def quote_gap(last_price: float, bar: BarCircumstances) -> float | None:
    """(price − mid) / mid of the quotes; None where no sound ones came since the bar began."""
    return (last_price - bar.quote_mid) / bar.quote_mid if bar.quote_mid is not UNSET else None


def apply_rules(facts: PolicyFacts, config: PolicyConfig, version: str) -> PolicyVerdict:
    """The most severe outcome of the rules that object, with their reasons as 'id: words', in rule order."""
    outcome = PolicyOutcome.RELEASE
    reasons: list[str] = []
    for rule in rules_of(version):
        try:
            objection = rule.check(facts, config)
        except (TypeError, ValueError, ArithmeticError, AttributeError):
            reasons.append(f"{rule.id}: could not be evaluated")
            outcome = PolicyOutcome.WITHHOLD
            continue
        if objection is not None:
            reasons.append(f"{rule.id}: {objection}")
            if outcome is not PolicyOutcome.WITHHOLD:
                outcome = rule.outcome
    return PolicyVerdict(outcome, reasons)


def judge_rows(
    columns: PolicyColumns, facts_at: Callable[[int], PolicyFacts], config: PolicyConfig, version: str
) -> dict[int, PolicyVerdict]:
    """The verdicts on those of n decisions that the columns do not clear, by row, as `apply_rules` has them of their
    `facts_at`. No rule objects to the others.
    """
    is_clear = np.ones(len(columns.symbols), np.bool_)
    for rule in rules_of(version):
        is_clear &= rule.clears is not None and rule.clears(columns, config)
    return {row: apply_rules(facts_at(row), config, version) for row in np.flatnonzero(~is_clear).tolist()}


@lru_cache(maxsize=16)
def rules_of(version: str) -> tuple[PolicyRule, ...]:
    """The rules of a version, such as 'policy/1'. Raises: InvalidInput for one that this program does not know."""
    name, _, number = version.partition("/")
    if name != "policy" or not number.isdecimal() or not 1 <= int(number) <= NUM_VERSIONS:
        raise InvalidInput(
            f"policy '{version[:40]}' is not known here: this program knows versions up to {VERSION}"
        )
    version_number = int(number)
    return tuple(rule for rule in RULES if rule.since <= version_number <= (rule.until or NUM_VERSIONS))


def _forecast_sound(facts: PolicyFacts, config: PolicyConfig) -> str | None:
    del config
    quantiles = facts.quantiles
    if not quantiles:
        return "there is no forecast"
    for row in quantiles:
        if not row or not isfinite(sum(row)):
            return "a quantile is missing or not finite"
        if sorted(row) != row:
            return "quantiles cross"
    return None


def _symbol_permitted(facts: PolicyFacts, config: PolicyConfig) -> str | None:
    symbol = facts.symbol
    if symbol in config.restricted_symbols:
        return "the symbol is on the restricted list"
    if ANY_SYMBOL in config.allowed_symbols or symbol in config.allowed_symbols:
        return None
    return "the symbol is not on the list of permitted ones"


def _jump(facts: PolicyFacts, config: PolicyConfig) -> tuple[float, float] | None:
    """Size and sigmas of the last return, where it is beyond both limits."""
    if facts.last_return is None and facts.last_sigmas is None:
        return None
    size, sigmas = abs(facts.last_return or 0.0), abs(facts.last_sigmas or 0.0)
    return None if size <= config.max_jump_return or sigmas <= config.max_jump_sigmas else (size, sigmas)


def _jump_v1(facts: PolicyFacts, config: PolicyConfig) -> str | None:
    if (jump := _jump(facts, config)) is None:
        return None
    size, sigmas = jump
    return f"a log return of {size:.3g}, {sigmas:.3g} sigmas, that nothing confirms: a bad print is suspected"


def _jump_unconfirmed(facts: PolicyFacts, config: PolicyConfig) -> str | None:
    if (jump := _jump(facts, config)) is None:
        return None
    size, sigmas = jump
    if facts.quote_gap is None:
        return f"a log return of {size:.3g}, {sigmas:.3g} sigmas, and no quotes confirm it: a bad print is suspected"
    if abs(facts.quote_gap) <= MAX_QUOTE_GAP_SHARE * size:
        return None
    return (
        f"a log return of {size:.3g}, {sigmas:.3g} sigmas, while the quotes lie {abs(facts.quote_gap):.2%} away: "
        "a bad print is suspected"
    )


def _bar_not_ahead(facts: PolicyFacts, config: PolicyConfig) -> str | None:
    if -facts.bar_age_ns <= config.max_bar_lead_s * NS_PER_S:
        return None
    return f"the bar ends {-facts.bar_age_ns / NS_PER_S:.3g} s after it was known: a clock is wrong"


def _quote_fresh(facts: PolicyFacts, config: PolicyConfig) -> str | None:
    age_ns = facts.quote_age_ns
    if age_ns is None or age_ns <= config.max_quote_age_s * NS_PER_S:
        return None
    return f"the newest quote is {age_ns / NS_PER_S:.3g} s old, limit {config.max_quote_age_s:.3g} s"


def _bar_fresh(facts: PolicyFacts, config: PolicyConfig) -> str | None:
    age_ns = facts.bar_age_ns
    limit_ns = max(config.max_bar_age_lengths * facts.bar_length_ns, config.min_bar_age_s * NS_PER_S)
    if age_ns <= limit_ns:
        return None
    return f"the bar came {age_ns / NS_PER_S:.3g} s after its end, limit {limit_ns / NS_PER_S:.3g} s"


def _band_width(facts: PolicyFacts, config: PolicyConfig) -> str | None:
    if 0.0 <= facts.band_width <= config.max_band_width:
        return None
    return f"the band is {facts.band_width:.3g} wide in log return, limit {config.max_band_width:.3g}"


def _not_in_shock(facts: PolicyFacts, config: PolicyConfig) -> str | None:
    del config
    return "the market is in shock: provisional" if facts.regime is Regime.SHOCK else None


def _source_clean(facts: PolicyFacts, config: PolicyConfig) -> str | None:
    if facts.quarantine_share <= config.max_quarantine_share:
        return None
    return (
        f"{100 * facts.quarantine_share:.3g}% of the source's latest rows were quarantined, "
        f"limit {100 * config.max_quarantine_share:.3g}%"
    )


def _sound_rows(columns: PolicyColumns, config: PolicyConfig) -> NDArray[np.bool_]:
    del config
    rows = columns.quantiles
    is_finite = np.logical_and.reduce(np.abs(rows) < _MAX_SUMMED, axis=(1, 2))
    is_sorted = np.logical_and.reduce(rows[:, :, 1:] >= rows[:, :, :-1], axis=(1, 2))
    return is_finite & is_sorted & (rows.shape[1] > 0) & (rows.shape[2] > 0)


def _permitted_rows(columns: PolicyColumns, config: PolicyConfig) -> NDArray[np.bool_] | bool:
    if not config.restricted_symbols and ANY_SYMBOL in config.allowed_symbols:
        return True
    restricted, allowed = set(config.restricted_symbols), set(config.allowed_symbols)
    is_open = ANY_SYMBOL in allowed
    return np.array([
        symbol not in restricted and (is_open or symbol in allowed) for symbol in columns.symbols
    ])  # fmt: skip


def _no_jump_rows(columns: PolicyColumns, config: PolicyConfig) -> NDArray[np.bool_]:
    is_small = np.abs(columns.last_return) <= config.max_jump_return
    return is_small | (np.abs(columns.last_sigmas) <= config.max_jump_sigmas)


def _not_ahead_rows(columns: PolicyColumns, config: PolicyConfig) -> NDArray[np.bool_]:
    return -columns.bar_age_ns <= config.max_bar_lead_s * NS_PER_S


def _fresh_quote_rows(columns: PolicyColumns, config: PolicyConfig) -> NDArray[np.bool_]:
    return columns.quote_age_ns <= config.max_quote_age_s * NS_PER_S


def _fresh_bar_rows(columns: PolicyColumns, config: PolicyConfig) -> NDArray[np.bool_]:
    lengths_ns = config.max_bar_age_lengths * columns.bar_length_ns
    return columns.bar_age_ns <= np.maximum(lengths_ns, config.min_bar_age_s * NS_PER_S)


def _narrow_rows(columns: PolicyColumns, config: PolicyConfig) -> NDArray[np.bool_]:
    return (columns.band_width >= 0.0) & (columns.band_width <= config.max_band_width)


def _no_shock_rows(columns: PolicyColumns, config: PolicyConfig) -> NDArray[np.bool_]:
    del config
    return ~columns.is_shock


def _clean_rows(columns: PolicyColumns, config: PolicyConfig) -> bool:
    return columns.quarantine_share <= config.max_quarantine_share


# Ids are never reused: ledgers quote them. A rule that changes ends with `until`; its successor begins with `since`.
# The newest `since` is the version that a run judges by.
RULES: tuple[PolicyRule, ...] = (
    PolicyRule("symbol-permitted", PolicyOutcome.WITHHOLD, _symbol_permitted, clears=_permitted_rows),
    PolicyRule("forecast-sound", PolicyOutcome.WITHHOLD, _forecast_sound, clears=_sound_rows),
    PolicyRule("look-ahead", PolicyOutcome.WITHHOLD, _bar_not_ahead, clears=_not_ahead_rows),
    PolicyRule("price-jump", PolicyOutcome.WITHHOLD, _jump_v1, until=1, clears=_no_jump_rows),
    PolicyRule("price-jump", PolicyOutcome.WITHHOLD, _jump_unconfirmed, since=2, clears=_no_jump_rows),
    PolicyRule("stale-quote", PolicyOutcome.CAUTION, _quote_fresh, clears=_fresh_quote_rows),
    PolicyRule("stale-bar", PolicyOutcome.CAUTION, _bar_fresh, clears=_fresh_bar_rows),
    PolicyRule("band-width", PolicyOutcome.CAUTION, _band_width, clears=_narrow_rows),
    PolicyRule("shock-regime", PolicyOutcome.CAUTION, _not_in_shock, clears=_no_shock_rows),
    PolicyRule("source-quality", PolicyOutcome.CAUTION, _source_clean, clears=_clean_rows),
)
NUM_VERSIONS = max(rule.since for rule in RULES)
VERSION = f"policy/{NUM_VERSIONS}"
