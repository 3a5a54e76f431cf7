"""Over arbitrary facts, policy never lets an unsound forecast through and never raises."""

from itertools import pairwise
from math import isfinite

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from htfi.domain.decision import PolicyOutcome, Regime
from htfi.governance.config import PolicyConfig
from htfi.governance.policy import VERSION, PolicyFacts, apply_rules

ANY = st.floats(allow_nan=True, allow_infinity=True)
FACTS = st.builds(
    PolicyFacts,
    symbol=st.text(max_size=5),
    regime=st.sampled_from(Regime),
    quantiles=st.lists(st.lists(ANY, max_size=5), max_size=3),
    band_width=ANY,
    bar_age_ns=st.integers(-(2**62), 2**62),
    bar_length_ns=st.integers(0, 2**62),
    quote_age_ns=st.none() | st.integers(-(2**62), 2**62),
    last_return=st.none() | ANY,
    last_sigmas=st.none() | ANY,
    quarantine_share=ANY,
    quote_gap=st.none() | ANY,
)
CONFIG = PolicyConfig()


@given(FACTS)
def test_what_is_not_withheld_is_finite_and_never_crosses(facts: PolicyFacts) -> None:
    verdict = apply_rules(facts, CONFIG, VERSION)
    sound = all(
        row and all(isfinite(value) for value in row) and all(low <= high for low, high in pairwise(row))
        for row in facts.quantiles
    )
    assert verdict.outcome is PolicyOutcome.WITHHOLD or (facts.quantiles and sound)


@given(FACTS)
def test_release_is_silent_and_anything_else_has_a_reason(facts: PolicyFacts) -> None:
    verdict = apply_rules(facts, CONFIG, VERSION)
    assert (verdict.outcome is PolicyOutcome.RELEASE) == (not verdict.reasons)
    assert apply_rules(facts, CONFIG, VERSION) == verdict


@given(FACTS, st.integers(0, 2**60))
def test_an_older_quote_is_never_judged_more_kindly(facts: PolicyFacts, more_ns: int) -> None:
    severity = list(PolicyOutcome)
    older = msgspec.structs.replace(facts, quote_age_ns=(facts.quote_age_ns or 0) + more_ns)
    before = apply_rules(
        msgspec.structs.replace(facts, quote_age_ns=facts.quote_age_ns or 0), CONFIG, VERSION
    )
    assert severity.index(apply_rules(older, CONFIG, VERSION).outcome) >= severity.index(before.outcome)
