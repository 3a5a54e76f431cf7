"""Kinds and columns are recognised by the names that people use."""

import pytest

from htfi.domain.errors import InvalidInput
from htfi.pipeline.intake.columns import recognise_layout, require_layout
from htfi.pipeline.intake.spec import SourceSpec

PLAIN = SourceSpec("s")


@pytest.mark.parametrize(
    ("names", "kind", "fields"),
    [
        (
            ["Date", "Open", "High", "Low", "Close", "Adj Close", "Volume"],
            "bar",
            {"ts": "Date", "close": "Close"},
        ),
        (["date", "Adj Close"], "bar", {"close": "Adj Close"}),
        (["TS", "Ticker", "PRICE", "Qty", "Exchange"], "trade", {"size": "Qty", "venue": "Exchange"}),
        (["time", "sym", "bid", "ask", "bid_qty", "ask_qty"], "quote", {"bid_size": "bid_qty", "ask": "ask"}),
        (["published_at", "title", "text", "tickers"], "news", {"headline": "title", "body": "text"}),
        (["published_at", "text"], "news", {"headline": "text"}),
        (["date", "series", "value"], "macro", {"series": "series", "value": "value"}),
        (
            ["available_at", "timestamp", "price"],
            "trade",
            {"available_at": "available_at", "ts": "timestamp"},
        ),
        (["date", "ts_close", "close"], "bar", {"ts": "ts_close"}),
    ],
)
def test_kind_and_columns_are_found_by_name(names: list[str], kind: str, fields: dict[str, str]) -> None:
    layout = recognise_layout(names, PLAIN)
    assert layout is not None
    assert layout.kind == kind
    assert fields.items() <= layout.fields.items()
    assert layout.missing_fields(PLAIN) == []


def test_news_text_is_not_both_headline_and_body() -> None:
    layout = recognise_layout(["ts", "text"], PLAIN)
    assert layout is not None
    assert "body" not in layout.fields


@pytest.mark.parametrize(
    ("sides", "kind"),
    [
        (["a", "b"], "quote"),
        (["ask"], "quote"),
        (["Bid"], "quote"),
        (["buy", "sell"], "trade"),
        (["b", "s"], "trade"),
    ],
)
def test_side_tells_quotes_from_trades(sides: list[str], kind: str) -> None:
    layout = recognise_layout(["ts", "side", "price", "size"], PLAIN, [{"side": side} for side in sides])
    assert layout is not None
    assert layout.kind == kind


def test_a_time_columns_name_tells_its_unit_and_the_end_of_bars() -> None:
    layout = recognise_layout(["close_time_ms", "close"], PLAIN)
    assert layout is not None
    assert (layout.fields["ts"], layout.time_unit) == ("close_time_ms", "ms")
    assert not recognise_layout(["open_time", "close"], PLAIN).stamps_end  # type: ignore[union-attr]
    assert recognise_layout(["close_time", "close"], PLAIN).stamps_end  # type: ignore[union-attr]


def test_date_and_time_columns_are_read_together() -> None:
    layout = recognise_layout(["Date", "Time", "Close"], PLAIN)
    assert layout is not None
    assert (layout.fields["ts"], layout.clock) == ("Date", "Time")


def test_a_mapping_overrides_names() -> None:
    spec = SourceSpec("s", kind="trade", columns={"price": "x", "ts": "when"})
    layout = recognise_layout(["when", "x", "price"], spec)
    assert layout is not None
    assert (layout.fields["price"], layout.fields["ts"]) == ("x", "when")


def test_a_mapped_column_means_nothing_else_and_an_absent_one_nothing() -> None:
    spec = SourceSpec("s", columns={"price": "close", "bid": "b"})
    layout = recognise_layout(["ts", "close"], spec)
    assert layout is not None
    assert (layout.kind, layout.fields) == ("trade", {"ts": "ts", "price": "close"})


@pytest.mark.parametrize(
    ("names", "spec", "said"),
    [
        (["alpha", "beta"], PLAIN, "f.csv: columns alpha, beta fit no kind of event"),
        (["price", "size"], PLAIN, "f.csv: a trade needs ts"),
        (["ts", "size"], SourceSpec("s", kind="quote"), "needs bid and ask"),
        (["ts", "price"], SourceSpec("s", columns={"price": "px"}), "f.csv: no column 'px' for price"),
    ],
)
def test_what_is_missing_is_named(names: list[str], spec: SourceSpec, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        require_layout(names, spec, "f.csv", [])
