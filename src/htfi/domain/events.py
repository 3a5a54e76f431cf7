"""Events: trades, quotes, bars, news, macro announcements; and what each kind of number from outside can be.

An event is immutable and becomes visible at `available_at_ns`, never before (docs/decisions/d06-available-at.md).
`source` and `row` state where it came from, so that a decision can name its inputs and a person can find the line.
Intake refuses numbers out of bounds, so that no arithmetic overflows later.
"""

import msgspec


class Trade(msgspec.Struct, frozen=True, gc=False, tag="trade"):
    """One execution. Price in the symbol's currency, size in units."""

    available_at_ns: int
    event_time_ns: int
    source: str
    row: int
    symbol: str
    price: float
    size: float
    venue: str = ""
    id: str = ""


class Quote(msgspec.Struct, frozen=True, gc=False, tag="quote"):
    """Best bid and ask of one venue. A side that the message does not have is None and stays as it was."""

    available_at_ns: int
    event_time_ns: int
    source: str
    row: int
    symbol: str
    bid: float | None
    bid_size: float | None
    ask: float | None
    ask_size: float | None
    venue: str = ""
    id: str = ""


class Bar(msgspec.Struct, frozen=True, gc=False, tag="bar"):
    """Open, high, low, close over [start_ns, end_ns). `interval` names the clock: '1d', '60s', 'volume:5000'."""

    available_at_ns: int
    event_time_ns: int
    source: str
    row: int
    symbol: str
    interval: str
    start_ns: int
    end_ns: int
    open: float
    high: float
    low: float
    close: float
    volume: float = 0.0
    id: str = ""


class News(msgspec.Struct, frozen=True, gc=False, tag="news"):
    """One item of text, untrusted. No symbols means that it concerns the whole market.

    `residency` are data-residency tags: it is stored only on machines that admit all of them. `publisher` is the
    publisher that it names. `corrects` is the id of an earlier item that it corrects, or takes back where `retracts`.
    `released_by` names the person who admitted it from quarantine.
    """

    available_at_ns: int
    event_time_ns: int
    source: str
    row: int
    id: str
    headline: str
    symbols: tuple[str, ...] = ()
    body: str = ""
    url: str = ""
    residency: tuple[str, ...] = ()
    publisher: str = ""
    corrects: str = ""
    retracts: bool = False
    released_by: str = ""


class MacroAnnouncement(msgspec.Struct, frozen=True, gc=False, tag="macro"):
    """One value of an economic or market series, as first published."""

    available_at_ns: int
    event_time_ns: int
    source: str
    row: int
    series: str
    value: float
    id: str = ""


class SuspicionReset(msgspec.Struct, frozen=True, gc=False, tag="cleared"):
    """A named person ends a suspicion: of one symbol, or of everything where it names none."""

    available_at_ns: int
    event_time_ns: int
    source: str
    row: int
    by: str
    why: str
    symbol: str = ""
    id: str = ""


class TimePassed(msgspec.Struct, frozen=True, gc=False, tag="time"):
    """No event before `available_at_ns` will follow: lets time advance when a live feed has no events."""

    available_at_ns: int


Event = Trade | Quote | Bar | News | MacroAnnouncement
FeedItem = Event | SuspicionReset | TimePassed


class FieldRepair(msgspec.Struct, frozen=True, gc=False):
    """A repaired field of a row: what it was (as text where that is not a finite number) and what it is."""

    field: str
    was: float | str | None
    now: float = msgspec.field(name="is")


class QuarantinedRow(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A row that did not become an event: where it stood, why, and its text.

    `num_bytes` and `sha256` are of the whole row where `raw` is not, byte for byte, all of it. With `repairs` the row
    did become an event, with these fields repaired.
    """

    source: str
    row: int
    reason: str
    detail: str
    raw: str
    num_bytes: int = 0
    sha256: str = ""
    repairs: tuple[FieldRepair, ...] = ()


# From a token worth a trillionth to an index quoted in a hyperinflated currency.
MIN_PRICE, MAX_PRICE = 1e-12, 1e12
MIN_SIZE, MAX_SIZE = 1e-18, 1e18  # tokens are counted in units of 1e-18; a size may also be 0
MIN_VALUE, MAX_VALUE = 1e-18, 1e18  # size of a macro value, which may also be 0
MAX_LOG_RETURN = 56.0  # ln(MAX_PRICE / MIN_PRICE) is 55.3: no return is larger


def is_price(value: float) -> bool:
    """Whether a number can be a price. NaN cannot."""
    return MIN_PRICE <= value <= MAX_PRICE


def is_size(value: float) -> bool:
    """Whether a number can be a size or a volume. NaN cannot."""
    return value == 0.0 or MIN_SIZE <= value <= MAX_SIZE


def is_value(value: float) -> bool:
    """Whether a number can be a macro value. NaN cannot."""
    return value == 0.0 or MIN_VALUE <= abs(value) <= MAX_VALUE
