"""Prices by FIX: any price arrives as the event it was, and no checked message is more than rows."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from htfi.domain.events import Quote, Trade
from htfi.execution.fix.checking import check_message
from htfi.execution.fix.dictionary import load_dictionary
from htfi.execution.fix.market_rows import MarketRows
from htfi.execution.fix.messages import FixMessage, decode, encode
from htfi.execution.fix.published_prices import PublishedPrices
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.spec import SourceSpec

DICTIONARY = load_dictionary("FIX44")
PARSER = RowParser(SourceSpec("fix", url="fix://a.toml", stamp="row", tolerance="0s"), "")
HEADER = [(34, "2"), (49, "A"), (52, "20231114-22:13:21.000"), (56, "B")]
ASKED = "a1b2c3-7-IBM"

times = st.integers(1, 4 * 10**18)
prices = st.floats(1e-12, 1e12)
sizes = st.one_of(st.just(0.0), st.floats(1e-12, 1e18))
venues = st.sampled_from(["", "N", "Q"])
sides = st.tuples(prices, st.none() | sizes)


@st.composite
def quotes(draw: st.DrawFn) -> Quote:
    bid, ask = draw(st.sampled_from([(True, False), (False, True), (True, True)]))
    low, high = sorted([draw(prices), draw(prices)])
    at_ns = draw(times)
    size = draw(sizes), draw(st.none() | sizes)
    return Quote(
        at_ns, at_ns, "fix", 1, "IBM", low if bid else None, size[0] if bid else None, high if ask else None,
        size[1] if ask else None, draw(venues),
    )  # fmt: skip


trades = st.builds(
    lambda at_ns, price, size, venue: Trade(at_ns, at_ns, "fix", 1, "IBM", price, size, venue),
    times, prices, sizes, venues,
)  # fmt: skip


def checked(kind: str, body: list[tuple[int, str]]) -> FixMessage | None:
    message = decode(encode("FIX.4.4", kind, HEADER, body), DICTIONARY)
    assert isinstance(message, FixMessage)
    return message if check_message(message, DICTIONARY, allow_user_fields=False) is None else None


@given(quotes() | trades)
def test_any_quote_or_trade_arrives_as_it_was(price: Quote | Trade) -> None:
    kind, body = PublishedPrices(DICTIONARY).message(price, 3, ASKED)
    message = checked(kind, list(body))
    assert message is not None
    (row,) = MarketRows(DICTIONARY, ["IBM"]).read(message)
    assert PARSER.parse(msgspec.json.decode(msgspec.json.encode(row)), 1, "", 1) == price


@given(st.lists(quotes(), max_size=8))
def test_whoever_subscribes_later_knows_what_who_was_there_knows(seen: list[Quote]) -> None:
    published, rows, late = PublishedPrices(DICTIONARY), *(MarketRows(DICTIONARY, ["IBM"]) for _ in range(2))
    for number, quote in enumerate(seen, 1):
        published.take(quote)
        kind, body = published.message(quote, number, ASKED)
        message = checked(kind, list(body))
        assert message is not None
        rows.read(message)
    kind, body = published.snapshot("IBM", ASKED)
    snapshot = checked(kind, list(body))
    assert snapshot is not None
    assert rows.read(snapshot) == []
    late.read(snapshot)
    assert late.read(snapshot) == []


numbers = st.decimals(allow_nan=False, allow_infinity=False, places=3).map(lambda value: f"{value:f}")
entries = st.fixed_dictionaries(
    {279: st.sampled_from("012"), 269: st.sampled_from("0123456789ABC")},
    optional={
        55: st.sampled_from(["IBM", "MSFT", "Z"]), 270: numbers, 271: numbers, 275: venues.filter(bool),
        272: st.sampled_from(["20231114", "00010101", "99991231"]),
        273: st.sampled_from(["22:13:21", "23:59:60.123456789"]), 278: st.text("ab1", min_size=1, max_size=3),
    },
)  # fmt: skip


@given(st.lists(entries, max_size=6), st.sampled_from("WX"), st.sampled_from([ASKED, "x", "a-b-MSFT"]))
def test_any_checked_message_is_rows_that_intake_takes_or_refuses(
    found: list[dict[int, str]], kind: str, asked: str
) -> None:
    left_out = (279, 55, 278) if kind == "W" else ()
    body: list[tuple[int, str]] = [
        (262, asked),
        *([(55, "IBM")] if kind == "W" else []),
        (268, str(len(found))),
    ]
    body += [field for one in found for field in one.items() if field[0] not in left_out]
    message = checked(kind, body)
    if message is None:
        return
    rows: list[dict[str, Any]] = MarketRows(DICTIONARY, ["IBM", "MSFT"]).read(message)
    for number, row in enumerate(rows, 1):
        cells = msgspec.json.decode(msgspec.json.encode(row))
        assert "refused" in cells or PARSER.parse(cells, number, b"row", 1) is not None
