"""Which column is which: a source's kind and fields, by the names that people use. Row parsers call it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from htfi.domain.errors import InvalidInput
from htfi.domain.written_days import DayOrder, day_order_of
from htfi.pipeline.intake.spec import UNITS, SourceSpec

if TYPE_CHECKING:  # read where a mapping has one
    from htfi.calendar.expressions import Expression

# In order of preference where a source has several.
_TIME = (
    *("ts", "timestamp", "datetime", "date_time", "event_time", "exch_ts", "published_at", "published"),
    *(
        "ts_close",
        "close_time",
        "end",
        "end_time",
        "bar_end",
        "start",
        "start_time",
        "open_time",
        "bar_start",
    ),
    *("time", "date", "day", "release_date"),
    *("ts_event", "window_start", "trade_date", "trading_date", "tradedate", "observation_date"),
    *("quote_datetime", "gmt_time", "utc_time", "local_time", "begin", "unix", "epoch", "datum", "t"),
    *("publishedat", "published_utc", "time_published", "pubdate"),
)
_IN_UTC = frozenset({"gmt_time", "utc_time"})
_ENDS = frozenset({"ts_close", "close_time", "end", "end_time", "bar_end"})
_AVAILABLE = ("available_at", "available", "received_at", "local_ts", "known_at")
_SYMBOL = ("symbol", "ticker", "sym", "instrument", "pair", "code")
_VENUE = ("venue", "exchange", "exch", "market", "mic")
_SIZE = ("size", "qty", "quantity", "amount", "volume", "vol")
_PRICE = ("price", "px", "last", "trade_price", "last_price")
# Names of the last price of a span where open, high and low stand beside it.
_LAST_OF_SPAN = (*_PRICE, "latest", "settle", "settlement", "settlement_price")
_SPAN = ("open", "high", "low")

_FIELDS: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType({
    "trade": {
        "symbol": _SYMBOL,
        "price": _PRICE,
        "size": _SIZE,
        "venue": _VENUE,
        "id": ("id", "trade_id"),
    },
    "quote": {
        "symbol": _SYMBOL,
        "bid": ("bid", "bid_price", "best_bid", "bid_px"),
        "bid_size": ("bid_size", "bid_qty", "bid_amount", "bid_volume", "bidsize", "bidqty"),
        "ask": ("ask", "ask_price", "best_ask", "ask_px", "offer"),
        "ask_size": ("ask_size", "ask_qty", "ask_amount", "ask_volume", "asksize", "askqty", "offer_size"),
        "side": ("side", "quote_side"),
        "price": _PRICE,
        "size": _SIZE,
        "venue": _VENUE,
        "id": ("id", "quote_id", "update_id"),
    },
    "bar": {
        "symbol": (*_SYMBOL, "tic", "secid", "act_symbol", "name"),
        "open": ("open", "o", "open_price", "openprice", "px_open", "openprc", "erster", "eröffnung"),
        "high": ("high", "h", "high_price", "highprice", "px_high", "hoch"),
        "low": ("low", "l", "low_price", "lowprice", "px_low", "tief"),
        "close": (
            *("close", "c", "adj_close", "adjclose", "adjusted_close"),
            *("close/last", "close_price", "closeprice", "px_last", "prc", "schlusskurs", "schluss"),
        ),
        "volume": (
            *("volume", "vol", "tick_volume", *_SIZE, "tickvol", "px_volume", "traded_volume"),
            *("total_traded_quantity", "shares", "v", "stücke", "stuecke", "volumen"),
        ),
        "interval": (
            *("interval", "timeframe", "time_frame", "tf", "resolution", "res"),
            *("granularity", "period", "bar_size", "barsize", "frequency", "freq"),
        ),
        "id": ("id",),
    },
    "news": {
        "symbols": ("symbols", "tickers", *_SYMBOL),
        "headline": ("headline", "title", "text"),
        "body": ("body", "lead", "summary", "description", "content", "text"),
        "url": ("url", "link"),
        "id": ("id", "news_id", "tweet_id", "guid"),
        "residency": ("residency", "data_residency"),
        "publisher": ("publisher", "outlet"),
        "corrects": ("corrects",),
        "retracts": ("retracts", "retracted"),
    },
    "macro": {
        "series": ("series", "series_id", "indicator"),
        "value": ("value", "val", "actual"),
        "id": ("id",),
    },
})  # fmt: skip
FIELDS = MappingProxyType(
    {kind: frozenset((*fields, "ts", "available_at", "kind")) for kind, fields in _FIELDS.items()}
)
ALL_FIELDS = frozenset(name for fields in FIELDS.values() for name in fields)
REQUIRED: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "trade": ("ts", "price"),
    "quote": ("ts",),
    "bar": ("ts", "close"),
    "news": ("ts", "headline"),
    "macro": ("ts", "series", "value"),
})  # fmt: skip

# Long tables as Nixtla's forecasting libraries name their columns.
_NIXTLA = {"unique_id": "symbol", "ds": "ts", "y": "close"}

# Fields that a mapping may make from several columns: those of rows that are read one by one.
_MADE = {
    "news": frozenset({"headline", "body", "id", "publisher"}),
    "macro": frozenset({"series", "value", "id"}),
}

_SEPARATORS = re.compile(r"[ -]")
BID_SIDES = frozenset({"b", "bid"})
ASK_SIDES = frozenset({"a", "ask", "offer"})
_TAKER_SIDES = frozenset({"buy", "sell", "s"})


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """What a row's cells mean: field → the source's own column name."""

    kind: str
    fields: Mapping[str, str]
    time_unit: str  # of numbers in the `ts` column, '' where their size decides
    available_unit: str
    stamps_end: bool  # by its name the time column is the bar's end
    clock: str = ""  # a second column with the time of day, for a date
    zone: ZoneInfo | None = None  # that the time column's name states
    day_order: DayOrder = ""  # of days such as 03/04/2021
    made: "Mapping[str, Expression]" = field(
        default_factory=lambda: MappingProxyType({})
    )  # by its text, as a column

    @property
    def columns(self) -> set[str]:
        """The source's own columns that it reads."""
        made = {name for one in self.made.values() for name in one.columns}
        return ({*self.fields.values(), self.clock} | made) - self.made.keys() - {""}

    def missing_fields(self, spec: SourceSpec) -> list[str]:
        """Fields without which no row of this kind can be read."""
        timed = spec.by_arrival or "available_at" in self.fields
        absent = [
            name for name in REQUIRED[self.kind] if name not in self.fields and not (timed and name == "ts")
        ]
        if (
            self.kind == "quote"
            and not self.fields.keys() & {"bid", "ask"}
            and not {"side", "price"} <= self.fields.keys()
        ):
            absent.append("bid and ask (or side and price)")
        return absent


def recognise_layout(
    names: Sequence[str], spec: SourceSpec, sample: Sequence[Mapping[str, Any]] = ()
) -> ColumnLayout | None:
    """The layout of rows with these column names, or None where no kind fits.

    `sample` holds a few rows: they distinguish a quote's side (bid, ask) from a trade's (buy, sell), and show which
    number of 03/04/2021 is the day.
    """
    made = _made_columns(names, spec)
    mapped = {name: column for name, column in spec.columns.items() if column in names or column in made}
    plain = {_plain(name): name for name in reversed(names) if name not in mapped.values()}
    if _NIXTLA.keys() <= plain.keys():
        plain |= {ours: plain[theirs] for theirs, ours in _NIXTLA.items()}
    kind = spec.kind or _kind(plain, mapped, sample)
    if not kind:
        return None
    fields = {name: found for name, synonyms in _FIELDS[kind].items() if (found := _first(plain, synonyms))}
    if kind == "news" and fields.get("body") == fields.get("headline"):
        fields.pop("body", None)
    if kind == "bar" and "close" not in fields and (last := _first(plain, _LAST_OF_SPAN)):
        fields["close"] = last
    time, time_unit = _time(plain, _TIME)
    available, available_unit = _time(plain, _AVAILABLE)
    clock = ""
    if "ts" in mapped:
        time, time_unit = mapped["ts"], ""
    elif _plain(time) in ("time", "date") and {"time", "date"} <= plain.keys():
        time, clock = plain["date"], plain["time"]
        if not _are_clocks(row.get(clock) for row in sample):
            clock = ""
    fields |= {name: found for name, found in (("ts", time), ("available_at", available)) if found}
    fields |= mapped
    return ColumnLayout(
        kind,
        fields,
        spec.unit or time_unit,
        spec.unit or available_unit,
        stamps_end=_plain(time) in _ENDS,
        clock=clock,
        zone=ZoneInfo("UTC") if _plain(time) in _IN_UTC else None,
        day_order=spec.dates or day_order_of(str(row.get(time, "")).strip() for row in sample),
        made=MappingProxyType(made),
    )


def time_column(names: Sequence[str]) -> str:
    """The column of instants or days by its name; '' without one."""
    return _time({_plain(name): name for name in reversed(names)}, _TIME)[0]


def _are_clocks(cells: Iterable[Any]) -> bool:
    """Whether a column beside dates holds times of day, as it is taken for without rows; daily files have 000000."""
    texts = [str(cell).strip() for cell in cells if cell not in (None, "")]
    return not texts or any(":" in text or text.strip("0") for text in texts)


def _made_columns(names: Sequence[str], spec: SourceSpec) -> "dict[str, Expression]":
    """The expressions of a mapping whose columns are all there."""
    made: dict[str, Expression] = {}
    for column in spec.columns.values():
        if column not in names:
            from htfi.calendar.expressions import parse_expression

            try:
                found = parse_expression(column)
            except InvalidInput:
                continue
            if not found.is_column and set(found.columns) <= set(names):
                made[column] = found
    return made


def _kind(plain: Mapping[str, str], mapped: Mapping[str, str], sample: Iterable[Mapping[str, Any]]) -> str:
    has = plain.keys() | mapped.keys()

    def any_of(kind: str, *fields: str) -> bool:
        return any(field in has or has & set(_FIELDS[kind][field]) for field in fields)

    if any_of("bar", "close") or (
        all(any_of("bar", name) for name in _SPAN) and _first(plain, _LAST_OF_SPAN)
    ):
        return "bar"
    if any_of("quote", "bid", "ask"):
        return "quote"
    if any_of("trade", "price"):
        side = mapped.get("side") or _first(plain, _FIELDS["quote"]["side"])
        sides = {str(row.get(side)).strip().lower() for row in sample} if side else set[str]()
        return "quote" if sides & (BID_SIDES | ASK_SIDES) and not sides & _TAKER_SIDES else "trade"
    if any_of("news", "headline"):
        return "news"
    if any_of("macro", "series") and any_of("macro", "value"):
        return "macro"
    return ""


def _plain(name: str) -> str:
    """A column's name as those of fields are written: 'Adj Close' is adj_close, '<HIGH>' high, 'Vol.' vol."""
    return _SEPARATORS.sub("_", name.strip().lower().strip("<>").rstrip("."))


def _first(plain: Mapping[str, str], synonyms: Iterable[str]) -> str:
    return next((plain[name] for name in synonyms if name in plain), "")


def _time(plain: Mapping[str, str], synonyms: Iterable[str]) -> tuple[str, str]:
    """The column of an instant and, where its name ends in one, the unit: 'ts_ms' counts milliseconds."""
    for name in synonyms:
        if name in plain:
            return plain[name], ""
        for unit in UNITS:
            if f"{name}_{unit}" in plain:
                return plain[f"{name}_{unit}"], unit
    return "", ""


def require_layout(
    names: Sequence[str], spec: SourceSpec, where: str, sample: Sequence[Mapping[str, Any]]
) -> ColumnLayout:
    """The layout of a file whose columns are fixed. Raises: InvalidInput, naming what is missing."""
    for name, column in spec.columns.items():
        if column not in names:
            _check_expression(column, name, names, where)
    layout = recognise_layout(names, spec, sample)
    if layout is None:
        raise InvalidInput(
            f"{where}: columns {', '.join(names)} fit no kind of event: state kind and columns in a mapping"
        )
    for name, column in layout.fields.items():
        if column in layout.made and name not in _MADE.get(layout.kind, ()):
            raise InvalidInput(
                f"{where}: {name} = '{column}': expressions make headline, body, id and publisher of news, and series, "
                "value and id of macro values"
            )
    if spec.residency and layout.kind != "news":
        raise InvalidInput(f"{where}: residency is for news, these are {layout.kind}s: remove it")
    if missing := layout.missing_fields(spec):
        raise InvalidInput(
            f"{where}: a {layout.kind} needs {', '.join(missing)}; its columns are {', '.join(names)}: "
            "map them under [source.columns]"
        )
    return layout


def _check_expression(column: str, name: str, names: Sequence[str], where: str) -> None:
    """Raises: InvalidInput, where a mapped text is neither a column nor an expression of columns that are there."""
    from htfi.calendar.expressions import parse_expression

    listed = f"its columns are {', '.join(names)}"
    try:
        found = parse_expression(column)
    except InvalidInput as error:
        raise InvalidInput(
            f"{where}: no column '{column}' for {name}: {listed}; as an expression: {error}"
        ) from error
    missing = next((one for one in found.columns if one not in names), "")
    if missing:
        raise InvalidInput(f"{where}: no column '{missing}' for {name}: {listed}")
    if found.joins == (name == "value"):
        what = (
            "a figure is needed: compute it from columns"
            if found.joins
            else 'a text is needed: join with + " " +'
        )
        raise InvalidInput(f"{where}: {name} = '{column}': {what}")
