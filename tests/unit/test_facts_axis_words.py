"""The side of an event by its words, where the same nouns stand in good and bad news."""

import pytest

from htfi.narrative.facts.axis_words import axis_side
from htfi.narrative.facts.record import EventKind as Kind


@pytest.mark.parametrize(
    ("side", "kind", "text"),
    [
        (-1, Kind.TARIFFS, "Brazil threatens 30% duties on US corn"),
        (1, Kind.TARIFFS, "Ottawa postpones counter-tariffs for a month"),
        (1, Kind.TARIFFS, "Appeals court: global duties struck down"),
        (-1, Kind.SANCTIONS, "Brussels tightens sanctions on Belarus banks"),
        (1, Kind.SANCTIONS, "Washington eases Venezuela oil sanctions"),
        (-1, Kind.WAR, "Shelling of the port city resumes overnight"),
        (1, Kind.WAR, "Both armies agree to a truce"),
        (-1, Kind.WAR, "Generals reject ceasefire"),
        (-1, Kind.DISASTER, "Magnitude 8 quake strikes off Chile"),
        (1, Kind.DISASTER, "Taipei lifts lockdown as cases ebb"),
        (1, Kind.REGULATION, "Seoul relaxes rules on bank dividends"),
        (-1, Kind.REGULATION, "Canberra cracks down on buy-now-pay-later"),
        (1, Kind.FISCAL, "Tokyo readies stimulus worth 20 trillion yen"),
        (-1, Kind.FISCAL, "Rome votes for austerity"),
        (-1, Kind.ASSET_PURCHASES, "Riksbank expands its bond-buying programme"),
        (1, Kind.ASSET_PURCHASES, "RBA tapers weekly purchases of bonds"),
        (-1, Kind.ASSET_PURCHASES, "Fed to slow balance sheet run-off from June"),
        (1, Kind.FX_INTERVENTION, "Jakarta sells dollars to defend the rupiah"),
        (-1, Kind.FX_INTERVENTION, "Seoul buys dollars to slow the won's rise"),
        (1, Kind.CURRENCY_POLICY, "Prague abandons its cap on the koruna"),
        (-1, Kind.CURRENCY_POLICY, "Kazakhstan abandons the tenge's peg"),
        (1, Kind.SUPPLY, "Saudi Arabia to raise output in April"),
        (-1, Kind.SUPPLY, "Norway strike halts production at two fields"),
        (1, Kind.INVENTORIES, "Gasoline stocks swell by 4 million barrels"),
        (-1, Kind.INVENTORIES, "Natural gas storage falls"),
        (-1, Kind.HARVEST, "Drought withers Argentine soy"),
        (0, Kind.TARIFFS, "Ministers met on tariffs in Geneva"),
        (0, Kind.TARIFFS, "Ankara lifts some duties and raises others to 20%: tariffs imposed on steel"),
        (1, Kind.EARNINGS, "Profit rises after tariffs were lifted"),
        (-1, Kind.EARNINGS, "Allmark quarterly profit falls as storm losses climb"),
        (1, Kind.EARNINGS, "Holmgard returns to profit"),
        (-1, Kind.GUIDANCE, "Rovex trims its full-year sales forecast"),
        (1, Kind.SALES_UPDATE, "Osker deliveries up a tenth"),
        (0, Kind.EARNINGS, "Osker profit falls less than feared"),
        (0, Kind.PRODUCT, "Osker profit rises"),
        (0, Kind.INVENTORIES, "Shares rise"),
    ],
)
def test_side_by_words(side: int, kind: Kind, text: str) -> None:
    assert axis_side(kind, text) == side
