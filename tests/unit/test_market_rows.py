"""What a venue publishes becomes the rows of the same prices, and what a counterparty leaves out or alters is said."""

from typing import Any

import msgspec
import pytest

from htfi.domain.events import Bar, Quote, Trade
from htfi.execution.fix.checking import check_message
from htfi.execution.fix.dictionary import load_dictionary
from htfi.execution.fix.market_rows import MarketRows
from htfi.execution.fix.messages import FixMessage, decode, encode
from htfi.execution.fix.order_codes import Composed
from htfi.execution.fix.price_messages import Price, plain_number
from htfi.execution.fix.published_prices import PublishedPrices, number_of
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.spec import SourceSpec

T0_NS = 1_700_000_000_123_456_789
ASKED = "a1b2c3-7-IBM"
VERSIONS = ("FIX44", "FIX50SP2")
PARSER = RowParser(SourceSpec("fix", url="fix://a.toml", stamp="row", tolerance="0s"), "")


def quote(at: int, **fields: Any) -> Quote:
    plain = {"bid": None, "bid_size": None, "ask": None, "ask_size": None} | fields
    return Quote(T0_NS + at, T0_NS + at, "fix", 1, "IBM", **plain)


PRICES: list[Price] = [
    quote(0, bid=101.3, bid_size=300.0, ask=101.35, ask_size=0.1, venue="N"),
    quote(1, bid=101.25, bid_size=7.0, venue="Q"),
    quote(2, ask=101.4, venue="N"),
    Trade(T0_NS + 3, T0_NS + 3, "fix", 1, "IBM", 101.30000000000001, 1e-7, "N"),
    quote(4, bid=1e-11, bid_size=1e18, ask=1e11, ask_size=0.0),
    Bar(T0_NS, T0_NS, "fix", 1, "IBM", "1d", T0_NS - 86_400 * 10**9, T0_NS, 1.5, 2.25, 1.0, 2.0, 1e6),
    # days in New York, of which the second has 23 hours
    Bar(1_268_542_800 * 10**9, 1_268_542_800 * 10**9, "fix", 1, "IBM", "1d", 1_268_456_400 * 10**9,
        1_268_542_800 * 10**9, 1.5, 2.25, 1.0, 2.0, 0.0),
    Bar(1_268_625_600 * 10**9, 1_268_625_600 * 10**9, "fix", 1, "IBM", "1d", 1_268_542_800 * 10**9,
        1_268_625_600 * 10**9, 1.5, 2.25, 1.0, 2.0, 0.0),
]  # fmt: skip


def arrived(composed: Composed, version: str = "FIX44") -> FixMessage:
    """The message as it arrives, checked."""
    kind, body = composed
    dictionary = load_dictionary(version)
    header = [(34, "2"), (49, "A"), (52, "20231114-22:13:21.000"), (56, "B")]
    message = decode(encode("FIX.4.4", kind, header, body), dictionary)
    assert isinstance(message, FixMessage)
    assert check_message(message, dictionary, allow_user_fields=False) is None
    return message


def x(*entries: dict[int, str], asked: str = ASKED) -> FixMessage:
    body = [(262, asked), (268, str(len(entries)))] + [field for one in entries for field in one.items()]
    return arrived(("X", body))


def w(*entries: dict[int, str], symbol: str = "IBM") -> FixMessage:
    body = [(262, ASKED), (55, symbol), (268, str(len(entries)))]
    return arrived(("W", body + [field for one in entries for field in one.items()]))


def rows_of(dictionary: str = "FIX44", **options: Any) -> MarketRows:
    return MarketRows(load_dictionary(dictionary), ["IBM"], **options)


@pytest.mark.parametrize("version", VERSIONS)
def test_published_prices_arrive_as_the_events_they_were(version: str) -> None:
    published, rows = PublishedPrices(load_dictionary(version)), rows_of(version)
    found: list[Any] = []
    for number, price in enumerate(PRICES, 1):
        message = arrived(published.message(price, number, ASKED), version)
        assert number_of(message) == number
        (row,) = rows.read(message)
        found.append(PARSER.parse(msgspec.json.decode(msgspec.json.encode(row)), 1, "", T0_NS * 2))
    assert found == PRICES


@pytest.mark.parametrize("version", VERSIONS)
def test_a_snapshot_is_a_row_only_where_something_was_missed(version: str) -> None:
    published, rows, late = PublishedPrices(load_dictionary(version)), rows_of(version), rows_of(version)
    assert rows.read(arrived(published.snapshot("IBM", ASKED), version)) == []
    for number, price in enumerate(PRICES[:3], 1):
        published.take(price)
        rows.read(arrived(published.message(price, number, ASKED), version))
    snapshot = arrived(published.snapshot("IBM", ASKED), version)
    assert rows.read(snapshot) == []
    assert [(row["venue"], row["bid"], row.get("ask")) for row in late.read(snapshot)] == [
        ("N", 101.3, 101.4),
        ("Q", 101.25, None),
    ]
    assert late.read(snapshot) == []


def test_what_a_snapshot_no_longer_shows_has_the_size_zero() -> None:
    rows = rows_of()
    rows.read(x({279: "0", 269: "0", 270: "10", 271: "5"}, {279: "0", 269: "1", 270: "11", 271: "6"}))
    (row,) = rows.read(w({269: "1", 270: "12", 271: "6"}))
    assert (row["bid"], row["bid_size"], row["ask"], row["ask_size"]) == (10.0, 0.0, 12.0, 6.0)


def test_a_snapshot_of_several_levels_is_its_best() -> None:
    levels = (
        {269: "0", 270: "9", 271: "1"},
        {269: "0", 270: "10", 271: "2"},
        {269: "1", 270: "12"},
        {269: "1", 270: "11"},
    )
    (row,) = rows_of().read(w(*levels))
    assert (row["bid"], row["bid_size"], row["ask"]) == (10.0, 2.0, 11.0)


def test_a_snapshot_with_an_opening_price_beside_its_quotes_is_no_bar() -> None:
    (row,) = rows_of().read(w({269: "4", 270: "9"}, {269: "0", 270: "10", 271: "2"}))
    assert (row["kind"], row["bid"]) == ("quote", 10.0)


def test_a_deleted_side_has_the_size_zero_at_the_price_that_it_had() -> None:
    rows = rows_of()
    assert rows.read(x({279: "2", 269: "0", 55: "IBM"})) == []  # it was not there
    rows.read(x({279: "0", 269: "0", 55: "IBM", 270: "10", 271: "5"}))
    (row,) = rows.read(x({279: "2", 269: "0", 55: "IBM"}))
    assert (row["bid"], row["bid_size"]) == (10.0, 0.0)


def test_an_entry_without_a_symbol_is_of_the_one_before_it_or_of_the_request() -> None:
    rows = MarketRows(load_dictionary("FIX44"), ["IBM", "MSFT"])
    first = {279: "0", 269: "0", 270: "1", 271: "2"}
    found = rows.read(x(first, first | {55: "MSFT"}, {279: "0", 269: "1", 270: "3", 271: "4"}))
    assert [(row["symbol"], row["bid"], row.get("ask")) for row in found] == [
        ("IBM", 1.0, None),
        ("MSFT", 1.0, 3.0),
    ]


@pytest.mark.parametrize(
    ("entry", "reason", "detail"),
    [
        ({279: "0", 269: "0", 55: "ZZZ", 270: "1"}, "bad_symbol", "35=X: 'ZZZ' was not asked for"),
        ({279: "0", 269: "1", 55: "IBM"}, "missing_field", "35=X: ask without a price"),
        ({279: "0", 269: "2", 55: "IBM"}, "missing_field", "35=X: a trade without a price"),
        (
            {279: "2", 269: "2", 55: "IBM", 270: "1"},
            "missing_field",
            "35=X: a trade is changed or taken back",
        ),
    ],
)
def test_an_entry_that_is_no_price_is_set_aside_with_its_reason(
    entry: dict[int, str], reason: str, detail: str
) -> None:
    (row,) = rows_of().read(x(entry))
    assert (row["refused"], row["detail"]) == (reason, detail)
    assert "|35=X|" in str(row["raw"])


def test_a_snapshot_of_an_instrument_that_was_not_asked_for_is_set_aside() -> None:
    (row,) = rows_of().read(w({269: "0", 270: "1"}, symbol="ZZZ"))
    assert row["refused"] == "bad_symbol"


def test_entries_of_other_kinds_and_other_messages_are_no_rows() -> None:
    assert rows_of().read(x({279: "0", 269: "6", 55: "IBM", 270: "1"})) == []
    header = [(34, "2"), (49, "A"), (52, "20231114-22:13:21.000"), (56, "B")]
    message = decode(encode("FIX.4.4", "h", header, [(336, "1"), (340, "3")]), load_dictionary("FIX44"))
    assert isinstance(message, FixMessage)
    assert rows_of().read(message) == []


def test_what_an_earlier_process_has_written_is_known() -> None:
    rows, again = rows_of(), rows_of()
    for row in rows.read(x({279: "0", 269: "0", 270: "10", 271: "5"})):
        again.remember(row)
    assert again.read(w({269: "0", 270: "10", 271: "5"})) == []


def test_prices_of_the_simulated_venue_have_their_number_as_id() -> None:
    message = arrived(PublishedPrices(load_dictionary("FIX44")).message(PRICES[0], 17, ASKED))
    assert [row["id"] for row in rows_of(with_ids=True).read(message)] == ["17"]


def test_a_number_has_no_more_decimals_than_a_reader_takes() -> None:
    assert plain_number(8.348397164594628e-17) == "0.000000000000000083483971645946"
    assert plain_number(0.1) == "0.1"
