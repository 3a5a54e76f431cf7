"""Judges a forecast before it is recorded: typed rules with stable ids, pure. The loop calls `judge` (D8).

A rule answers with words when it objects and None when it is content. Comparisons ask whether a fact is
within its limit, so that a NaN is not; a rule that cannot be evaluated withholds. Nothing unknown passes.
"""

from collections.abc import Callable, Sequence
from math import isfinite

import msgspec

from htfi.domain.decision import PolicyOutcome, PolicyVerdict, Regime
from htfi.domain.time import NS_PER_S
from htfi.governance.config import ANY_SYMBOL, PolicyConfig

VERSION = "policy/1"


class PolicyFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the rules judge by: plain values of one forecast.

    Shapes: quantiles [H, Q], the first row one bar ahead. Units: log returns; ages and lengths in ns; sigmas
    in the standard deviation expected of the bar. `quote_age_ns` is None for a series that has no quotes,
    `last_return` and `last_sigmas` before a second bar. `jump_confirmed` means that another source, such as
    the quotes, agrees with the price. `quarantine_share` is the part of its source's latest rows set aside.
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


class PolicyRule(msgspec.Struct, frozen=True, gc=False):
    """One rule: its stable id, what its objection means, and its check."""

    id: str
    outcome: PolicyOutcome
    check: Callable[[PolicyFacts, PolicyConfig], str | None]


def judge(facts: PolicyFacts, config: PolicyConfig) -> PolicyVerdict:
    """The most severe outcome of the rules that object, with their reasons as 'id: words', in rule order."""
    outcome = PolicyOutcome.RELEASE
    reasons: list[str] = []
    for rule in RULES:
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


def _price_jump(facts: PolicyFacts, config: PolicyConfig) -> str | None:
    if facts.last_return is None and facts.last_sigmas is None:
        return None
    size, sigmas = abs(facts.last_return or 0.0), abs(facts.last_sigmas or 0.0)
    if size <= config.max_jump_return or sigmas <= config.max_jump_sigmas:
        return None
    return f"a log return of {size:.3g}, {sigmas:.3g} sigmas, that nothing confirms: a bad print is suspected"


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


# The ids are kept for good: ledgers quote them.
RULES: tuple[PolicyRule, ...] = (
    PolicyRule("symbol-permitted", PolicyOutcome.WITHHOLD, _symbol_permitted),
    PolicyRule("forecast-sound", PolicyOutcome.WITHHOLD, _forecast_sound),
    PolicyRule("look-ahead", PolicyOutcome.WITHHOLD, _bar_not_ahead),
    PolicyRule("price-jump", PolicyOutcome.WITHHOLD, _price_jump),
    PolicyRule("stale-quote", PolicyOutcome.CAUTION, _quote_fresh),
    PolicyRule("stale-bar", PolicyOutcome.CAUTION, _bar_fresh),
    PolicyRule("band-width", PolicyOutcome.CAUTION, _band_width),
    PolicyRule("shock-regime", PolicyOutcome.CAUTION, _not_in_shock),
    PolicyRule("source-quality", PolicyOutcome.CAUTION, _source_clean),
)
