"""What the words of a text forbid: kinds of event, and advice as news."""

import pytest

from htfi.narrative.facts.event_words import (
    forbidden_kinds,
    gives_advice,
    is_market_wrap,
    reassures,
    tone_side,
)
from htfi.narrative.facts.record import EventKind


@pytest.mark.parametrize(
    ("text", "kind", "is_forbidden"),
    [
        ("Pension fund buys stake in payments group", EventKind.CRYPTO_ADOPTION, True),
        ("Pension fund adds bitcoin to its reserves", EventKind.CRYPTO_ADOPTION, False),
        ("Exchange wins right to clear swaps early", EventKind.ASSET_PURCHASES, True),
        ("BoE steps up gilt buying", EventKind.ASSET_PURCHASES, False),
        ("Investor drops his push for seats on the board", EventKind.SHORT_REPORT, True),
        ("Short seller says miner overstated its reserves", EventKind.SHORT_REPORT, False),
        ("Dearer crude lifts refiner's profits", EventKind.SUPPLY, True),
        ("OPEC trims output", EventKind.SUPPLY, False),
        ("Group to spin off its cable arm", EventKind.SPLIT, True),
        ("Retailer sets 3-for-1 split", EventKind.SPLIT, False),
    ],
)
def test_kind_needs_its_words(text: str, kind: EventKind, is_forbidden: bool):
    assert (kind in forbidden_kinds(text)) is is_forbidden


@pytest.mark.parametrize(
    ("text", "is_nothing"),
    [
        ("If you'd invested $1,000 in Brewer a decade ago", True),
        ("3 stocks to buy before the next rally", True),
        ("Brewer lifts outlook after strong summer", False),
        ("Carmaker unveils its new model", False),
    ],
)
def test_advice_is_known(text: str, is_nothing: bool):
    assert gives_advice(text) is is_nothing


def test_wraps_of_markets_and_reassurances_are_known():
    assert is_market_wrap("European shares edge up before payrolls")
    assert is_market_wrap("Banks lift Wall Street")
    assert not is_market_wrap("Bank shares its plan for growth")
    assert reassures("Lender says it has ample liquidity")
    assert not reassures("Lender raises its dividend")


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("Brewer shorts squeezed once more", 1),
        ("perfect day to short brewer", -1),
        ("Number of complaints at lender drops by a third", 1),
        ("Miner scales back expansion in Chile", -1),
        ("Brewer opens a shop", 0),
    ],
)
def test_set_phrases_tell_the_side(text: str, side: int):
    assert tone_side(text) == side
