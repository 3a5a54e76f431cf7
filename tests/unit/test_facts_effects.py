"""From a kind of event to an asset: what symbols stand for, and the lines of the table of effects that speak."""

import pytest

from htfi.narrative.facts.assets import AssetKind, asset_of
from htfi.narrative.facts.effects import effects_on, table
from htfi.narrative.facts.record import EventGroup, EventKind, PartyRole
from htfi.narrative.facts.regions import find_regions, is_within, region_of_currency


@pytest.mark.parametrize(
    ("symbol", "name", "kind"),
    [
        ("AAPL", "", AssetKind.EQUITY),
        ("GS.N", "", AssetKind.EQUITY),
        ("ALL", "Allstate", AssetKind.EQUITY),
        ("IT", "Gartner", AssetKind.EQUITY),
        ("CL", "Colgate-Palmolive", AssetKind.EQUITY),
        ("CL", "WTI crude oil", AssetKind.OIL),
        ("CL=F", "", AssetKind.OIL),
        ("CLZ25", "", AssetKind.OIL),
        ("ZM", "Zoom", AssetKind.EQUITY),
        ("^VIX", "", AssetKind.VOLATILITY),
        ("SPY", "", AssetKind.INDEX),
        ("ES=F", "", AssetKind.INDEX),
        ("TLT", "", AssetKind.BOND_PRICE),
        ("^TNX", "", AssetKind.BOND_YIELD),
        ("EURUSD", "", AssetKind.CURRENCY),
        ("USD/JPY", "", AssetKind.CURRENCY),
        ("DX-Y.NYB", "", AssetKind.DOLLAR),
        ("XAUUSD", "", AssetKind.GOLD),
        ("gold", "", AssetKind.GOLD),
        ("BTC-USD", "", AssetKind.CRYPTO),
        ("ETHUSDT", "", AssetKind.CRYPTO),
        ("XLE", "", AssetKind.SECTOR),
    ],
)
def test_a_symbol_stands_for_a_class_of_asset(symbol: str, name: str, kind: AssetKind) -> None:
    assert asset_of(symbol, name).kind is kind


def test_a_pair_has_the_economies_of_both_sides() -> None:
    pair = asset_of("EUR/USD")
    assert (pair.region, pair.quote) == ("EA", "US")
    assert asset_of("JPY").quote == "US"


@pytest.mark.parametrize(
    ("symbol", "sign"),
    [
        ("SPX", -1), ("^VIX", 1), ("US10Y", 1), ("TLT", -1), ("EURUSD", -1), ("USDJPY", 1), ("DXY", 1), ("UUP", 1),
        ("GLD", -1), ("BTCUSD", -1), ("SH", 1), ("SQQQ", 1), ("SVXY", -1), ("TBT", 1), ("HYG", -1),
    ],
)  # fmt: skip
def test_a_tighter_fed_moves_each_class_its_own_way(symbol: str, sign: int) -> None:
    (line,) = effects_on(asset_of(symbol), EventKind.RATE_DECISION, ("US",))
    assert line.sign == sign


def test_both_sides_of_a_pair_may_speak() -> None:
    lines = effects_on(asset_of("EURUSD"), EventKind.INFLATION, ("EA", "US"))
    assert [line.sign for line in lines] == [1, -1]


def test_an_event_abroad_says_nothing_about_a_home_index() -> None:
    assert effects_on(asset_of("NIFTY"), EventKind.JOBS, ("US",)) == []
    assert effects_on(asset_of("DAX"), EventKind.RATE_DECISION, ("EA",))


def test_an_acquirer_is_not_a_target() -> None:
    share = asset_of("AMGN")
    (target,) = effects_on(share, EventKind.ACQUISITION, (), PartyRole.TARGET)
    (acquirer,) = effects_on(share, EventKind.ACQUISITION, (), PartyRole.ACQUIRER)
    assert target.effect.size > 4 * acquirer.effect.size
    (rater,) = effects_on(share, EventKind.RATING, (), PartyRole.RATER)
    assert rater.sign == 0


@pytest.mark.parametrize("kind", [kind for kind in EventKind if kind.group is not EventGroup.NONE])
def test_a_named_asset_always_has_a_line(kind: EventKind) -> None:
    assert effects_on(asset_of("XAUUSD"), kind, (), is_named=True)


def test_every_line_has_a_source_and_sane_numbers() -> None:
    numbers = [line.number for line in table()]
    assert numbers == list(range(1, len(numbers) + 1))
    for line in table():
        assert line.source
        assert line.sign in (-1, 0, 1)
        assert 0.0 <= line.size <= max(line.cap, 0.0) <= 8.0
        assert 1.0 <= line.volatility <= 3.0


def test_regions_are_found_by_their_own_words() -> None:
    assert find_regions("German factory orders fall, euro slips against the dollar")[0] in ("DE", "EA")
    assert find_regions("us against them") == ()
    assert "US" in find_regions("US payrolls rise")
    assert region_of_currency("CHF") == "CH"
    assert is_within("DE", "EA")
    assert not is_within("GB", "EA")
