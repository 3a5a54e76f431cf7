"""Linking: tickers count with evidence, firms named like words with a sign, central banks tell what they move."""

import pytest

from htfi.narrative.encoding.linking import MAX_SYMBOLS, EntityLinker, entity_kind, names_company

LINKER = EntityLinker({})


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("$AAPL and $brk.b up", ("AAPL", "BRK.B")),
        ("Wal-Mart Stores Inc. ( WMT.N ) said", ("WMT",)),
        ("(AAPL.OQ) BRKa.N 7203.T", ("AAPL", "BRK.A", "7203.T")),
        ("NYSE: ALL, Nasdaq:MSFT", ("ALL", "MSFT")),
        ("EUR/USD slips, USDJPY=X firms", ("EUR", "USD", "JPY")),
        ("Johnson & Johnson and AT&T", ("JNJ", "T")),
        ("Kohl's, Macy’s and Lowe's", ("KSS", "M", "LOW")),
        ("Bank of America, not the Bank of Japan", ("BAC", "BOJ")),
        ("Fed's Powell sees no cut; ECB waits", ("FED", "ECB")),
        ("FEDEX RAISES FORECAST, BOEING FALLS", ("FDX", "BA")),
        ("S&P 500 ends higher as crude oil slides", ("SPX", "OIL")),
        ("Apple unveils a phone", ("AAPL",)),
        ("Report says Apple in talks", ("AAPL",)),
        ("Ford's profit rises, Target cuts outlook", ("F", "TGT")),
    ],
)
def test_what_a_text_names_is_found_in_its_order(text: str, symbols: tuple[str, ...]) -> None:
    assert LINKER.link(text) == symbols


@pytest.mark.parametrize(
    "text",
    [
        "IT IS ALL A GO FOR CAT AND DOG",  # tickers that are words, without evidence
        "Gap widens between rich and poor",
        "Apple juice recalled after complaints",
        "they are fed up with the visa rules and a target",
        "The U.S. and the U.N. said, from L.A. to D.C.",
        "shares cost $5 and $10.50, up 3.5 percent",
        "ABCDEF/GHI and $TOOLONGS",
        "",
    ],
)
def test_words_are_no_symbols(text: str) -> None:
    assert LINKER.link(text) == ()


def test_names_of_the_run_come_before_the_built_in_ones() -> None:
    linker = EntityLinker({"MINE": ["Wall Street", "Boeing"], "X1": ["Ülker Bisküvi"]})
    assert linker.link("Boeing lifts Wall Street, Ülker Bisküvi and Airbus fall") == ("MINE", "X1", "AIR")
    assert EntityLinker({"MINE": ["Boeing"]}, built_in=False).link("Boeing and Airbus") == ("MINE",)


def test_symbols_are_bounded_and_each_told_once() -> None:
    many = " ".join(f"$A{chr(65 + at // 26)}{chr(65 + at % 26)}" for at in range(200))
    assert len(LINKER.link(many)) == MAX_SYMBOLS
    assert LINKER.link("Boeing " * 50) == ("BA",)


def test_a_symbol_has_the_kind_of_its_table() -> None:
    assert [entity_kind(symbol) for symbol in ("ECB", "SPX", "GOLD", "EUR", "AAPL")] == [
        "central_banks",
        "indices",
        "commodities",
        "currencies",
        "companies",
    ]


@pytest.mark.parametrize(
    ("symbol", "written", "is_firm"),
    [
        ("NOK", "Nokia", True),
        ("NOK", "Norwegian krone", False),
        ("NOK", "NOK", False),
        ("AAPL", "Apple", True),
    ],
)
def test_a_symbol_that_a_currency_has_too_is_a_firms_where_the_text_names_one(
    symbol: str, written: str, is_firm: bool
) -> None:
    assert names_company(symbol, written) == is_firm
