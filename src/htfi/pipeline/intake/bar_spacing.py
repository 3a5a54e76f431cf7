"""How long bars are: the interval as feeds write it (`1h`, `H4`, `PERIOD_M15`, `15 min`, `daily`), each symbol's by the
spacing of its rows, and whether the two agree.

A bar is no longer than the gap to the next row of its symbol, so a gap bounds its length from above, whatever the
file states. Readers survey a file of bars before they read it; `times` looks each bar up.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY, NS_PER_MS, NS_PER_S, format_duration, parse_duration

Instants = NDArray[np.int64]

ACCEPTED_INTERVALS = (
    "1m 15min 1h 4h 1d 1w 1mo · M1 M15 H1 H4 D1 W1 MN1 · 60 (minutes) · hourly daily weekly · volume:5000"
)
COUNTED_CLOCKS = ("volume", "dollar", "tick")
BAR_LENGTH_LIMITS_NS = (NS_PER_MS, 366 * NS_PER_DAY)  # of the shortest and of the longest bar
_MAX_TEXT = 40
_MINUTE_NS, _HOUR_NS = 60 * NS_PER_S, 3600 * NS_PER_S
# Months, quarters and years are as long as the longest of them: a bar is never known before its end.
_MONTHS_NS = {months: days * NS_PER_DAY for months, days in ((1, 31), (2, 62), (3, 92), (6, 184), (12, 366))}
_UNIT_NS = {
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), NS_PER_MS),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), NS_PER_S),
    **dict.fromkeys(("m", "t", "min", "mins", "minute", "minutes"), _MINUTE_NS),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), _HOUR_NS),
    **dict.fromkeys(("d", "day", "days"), NS_PER_DAY),
    **dict.fromkeys(("w", "wk", "wks", "week", "weeks"), 7 * NS_PER_DAY),
}
_UNIT_MONTHS = {
    **dict.fromkeys(("mo", "mon", "mn", "month", "months"), 1),
    **dict.fromkeys(("q", "quarter", "quarters"), 3),
    **dict.fromkeys(("y", "yr", "year", "years"), 12),
}
_WORDS = {
    "minutely": "1min", "hourly": "1h", "daily": "1d", "weekly": "1w", "monthly": "1mo",
    "quarterly": "1q", "yearly": "1y", "annual": "1y", "annually": "1y",
}  # fmt: skip
_PREFIX = re.compile(r"(?:period|timeframe)_", re.IGNORECASE)
_NUMBER_FIRST = re.compile(r"(\d+(?:\.\d+)?)[ _-]?([A-Za-z]+)")
_LETTERS_FIRST = re.compile(r"(MN|[SMHDW])(\d+)", re.IGNORECASE)  # MetaTrader: M15 is 15 minutes, MN1 a month
_ISO_8601 = re.compile(r"P(?:(T)(\d+)([SMH])|(\d+)([DWMY]))")


def read_interval(text: str) -> str:
    """The one name of a bar's clock: '60s', 'M1' and '1 min' are '1m'; 'volume:5000' stays. Raises: InvalidInput."""
    head, found, amount = text.partition(":")
    if found and head in COUNTED_CLOCKS:
        try:
            good = float(amount) > 0
        except ValueError:
            good = False
        if good:
            return text
        raise InvalidInput(
            f"'{text[:_MAX_TEXT]}' is not an interval: write {head}: and a number above 0, such as {head}:5000"
        )
    length_ns = _length_ns(text.strip()) if len(text) <= _MAX_TEXT else None
    if length_ns is None:
        raise InvalidInput(f"'{text[:_MAX_TEXT]}' is not an interval: write one of {ACCEPTED_INTERVALS}")
    if not BAR_LENGTH_LIMITS_NS[0] <= length_ns <= BAR_LENGTH_LIMITS_NS[1]:
        raise InvalidInput(f"'{text[:_MAX_TEXT]}' is not an interval: give one from 1ms to 366d")
    return format_duration(length_ns)


def is_timed(interval: str) -> bool:
    """Whether an interval is a span of time, not a count of volume, dollars or ticks."""
    return ":" not in interval


def _length_ns(text: str) -> int | None:
    """A span of time in nanoseconds; None for what is none.

    Only a number before a capital M means months ('1M'), and only those that make whole parts of a year: '15M'
    could be minutes as well, so it is none.
    """
    if text.isascii() and text.isdecimal():
        return int(text) * _MINUTE_NS
    if match := _ISO_8601.fullmatch(text):
        if match[1]:
            return int(match[2]) * _UNIT_NS[match[3].lower()]
        return _unit_length_ns(float(match[4]), "mo" if match[5] == "M" else match[5].lower())
    text = _PREFIX.sub("", text)
    text = _WORDS.get(text.lower(), text)
    if match := _LETTERS_FIRST.fullmatch(text):
        return _unit_length_ns(float(match[2]), match[1].lower())
    if text == "M":
        return _unit_length_ns(1.0, "mo")
    if match := _NUMBER_FIRST.fullmatch(text):
        return _unit_length_ns(float(match[1]), "mo" if match[2] == "M" else match[2].lower())
    return _unit_length_ns(1.0, text.lower()) if text.lower() not in ("m", "t", "s", "ms") else None


def _unit_length_ns(count: float, unit: str) -> int | None:
    if unit in _UNIT_MONTHS:
        months = count * _UNIT_MONTHS[unit]
        return _MONTHS_NS.get(int(months)) if months.is_integer() else None
    return round(count * _UNIT_NS[unit]) if unit in _UNIT_NS else None


MAX_SURVEYED = 20_000_000  # bars of one file: 8 bytes each while it is surveyed
REGIME_ROWS = 16  # so many bars without the usual gap may be bars of another length
_MIN_COMMON_SHARE = 0.25  # of a symbol's gaps that equal its most common one: below that nothing is usual
_SURE_SHARE, _SURE_COUNT = 0.5, 3  # of gaps that contradict a stated interval
_OVERLAP, _APART = 0.75, 1.5  # spacing over the stated interval: bars that overlap, bars that are longer
# A lone gap as long as bars are made may be a longer bar; any other lone gap is a closed market or missing rows.
_BAR_LENGTHS_NS = np.array([
    *(NS_PER_S * n for n in (2, 3, 5, 10, 15, 20, 30)),
    *(_MINUTE_NS * n for n in (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)),
    *(_HOUR_NS * n for n in (1, 2, 3, 4, 6, 8, 12)),
    *(NS_PER_DAY * n for n in (1, 7, 28, 29, 30, 31, 89, 90, 91, 92, 365, 366)),
], np.int64)  # fmt: skip
_SPANS_OF_DAYS = ((28, 31), (89, 92), (365, 366))  # months, quarters, years: each as long as its longest

_EPOCH_DAY = date(1970, 1, 1).toordinal()

SpacingKey = tuple[str, str, bool]  # symbol, stated interval or '', whether its rows carry dates only


@dataclass(frozen=True, slots=True)
class BarSpacing:
    """The bars of one symbol in order of time, cut where their spacing changes.

    Part k begins at `begins[k]` and has bars of `lengths_ns[k]`, or is refused for the reason `refusals[k]`. The bars
    that begin at `doubtful` are known only so long after their beginning: they may be longer than their interval.
    """

    begins: Instants
    lengths_ns: Instants
    intervals: tuple[str, ...]
    refusals: tuple[str, ...]
    doubtful: Instants
    known_after_ns: Instants

    def find_one(self, at_ns: int) -> tuple[int, int]:
        """The part that a bar belongs to, and how long after its beginning it is known."""
        part = max(bisect_right(self.begins, at_ns) - 1, 0) if len(self.refusals) > 1 else 0
        if len(self.doubtful):
            place = bisect_left(self.doubtful, at_ns)
            if place < len(self.doubtful) and self.doubtful[place] == at_ns:
                return part, int(self.known_after_ns[place])
        return part, int(self.lengths_ns[part])

    def find(self, at_ns: Instants) -> tuple[NDArray[np.intp], Instants]:
        """`find_one` of many."""
        parts = np.maximum(np.searchsorted(self.begins, at_ns, side="right") - 1, 0)
        known_after = self.lengths_ns[parts]
        if len(self.doubtful):
            places = np.minimum(np.searchsorted(self.doubtful, at_ns), len(self.doubtful) - 1)
            found = self.doubtful[places] == at_ns
            known_after = np.where(found, self.known_after_ns[places], known_after)
        return parts, known_after


class BarSpacings:
    """The clocks of one file."""

    def __init__(self, clocks: dict[SpacingKey, BarSpacing], *, complete: bool = True) -> None:
        self.complete = complete
        self._clocks = clocks

    def of(self, symbol: str, stated: str, dated: bool) -> BarSpacing | None:
        """None for a symbol that the survey did not meet."""
        return self._clocks.get((symbol, stated, dated))

    @property
    def mixed(self) -> bool:
        """Whether rows in order of their beginning may become known in another order."""
        lengths = {int(length) for clock in self._clocks.values() for length in clock.lengths_ns if length}
        return len(lengths) > 1 or (
            len(self._clocks) > 1 and any(len(clock.doubtful) for clock in self._clocks.values())
        )


class BarSurvey:
    """Collects when the bars of each symbol begin, in the file's order or any other."""

    def __init__(self) -> None:
        self._seen: dict[SpacingKey, array[int]] = {}
        self._num_rows = 0

    @property
    def full(self) -> bool:
        return self._num_rows >= MAX_SURVEYED

    def add(self, key: SpacingKey, at_ns: int) -> None:
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = array("q")
        found.append(at_ns)
        self._num_rows += 1

    def add_all(self, key: SpacingKey, at_ns: Instants) -> None:
        self._seen.setdefault(key, array("q")).frombytes(at_ns.astype(np.int64).tobytes())
        self._num_rows += len(at_ns)

    def clocks(self) -> BarSpacings:
        return BarSpacings(
            {key: _bar_spacing(key, np.frombuffer(seen, np.int64)) for key, seen in self._seen.items()},
            complete=not self.full,
        )


def begin_ns(moment: int | date) -> int:
    """Where a bar stands in the order of its symbol: its time, or the number of its day as nanoseconds."""
    return (moment.toordinal() - _EPOCH_DAY) * NS_PER_DAY if isinstance(moment, date) else moment


def _bar_spacing(key: SpacingKey, seen: Instants) -> BarSpacing:
    symbol, stated, dated = key
    starts = np.unique(seen)
    gaps = np.diff(starts)
    parts = _spacing_parts(_calendar_gaps(gaps), 0, NS_PER_DAY if dated else 0)
    begins = np.array([starts[first] for first, _ in parts], np.int64)
    lengths = np.array([length for _, length in parts], np.int64)
    names = tuple(map(_interval_name, lengths.tolist()))
    if stated:
        stated_ns = parse_duration(stated) if is_timed(stated) else 0
        ends = [*(first for first, _ in parts[1:]), len(gaps)]
        refusals = tuple(
            _disagreement(symbol, stated, stated_ns, length, _calendar_gaps(gaps[first:end]))
            for (first, length), end in zip(parts, ends, strict=True)
        )
        nothing = np.zeros(0, np.int64)
        lengths = np.full(len(parts), stated_ns, np.int64)
        return BarSpacing(begins, lengths, (stated,) * len(parts), refusals, nothing, nothing)
    refusals = tuple("" if name else _unknown_length(symbol, len(starts)) for name in names)
    sizes = np.diff([*(first for first, _ in parts), len(starts)])
    doubtful, known_after = _doubtful_bars(starts, gaps, np.repeat(lengths, sizes))
    return BarSpacing(begins, lengths, names, refusals, doubtful, known_after)


def _spacing_parts(gaps: Instants, first: int, shortest_ns: int) -> list[tuple[int, int]]:
    """Where parts of one spacing begin, counted from `first`, and the usual gap of each; 0 where none is usual.

    Rows that carry dates only and of which two follow each other by `shortest_ns`, a day, are days with holes.
    """
    values, counts = np.unique(gaps, return_counts=True)
    if not len(gaps):
        return [(first, 0)]
    usual = int(values[counts == counts.max()].max())
    if len(values) > 1 and counts.max() < max(2.0, _MIN_COMMON_SHARE * len(gaps)):
        usual = int(values[0]) if values[0] == shortest_ns else 0
        return [(first, usual)]
    places = np.flatnonzero(gaps == usual)
    parts: list[tuple[int, int]] = []
    resumes = 0
    for begin, end in zip([0, *(places + 1).tolist()], [*places.tolist(), len(gaps)], strict=True):
        if end - begin < REGIME_ROWS:
            continue
        _, counts = np.unique(gaps[begin:end], return_counts=True)
        if counts.max() < _SURE_SHARE * (end - begin):
            continue
        if begin > resumes:
            parts.append((first + resumes, usual))
        parts += _spacing_parts(gaps[begin:end], first + begin, shortest_ns)
        resumes = end
    if resumes < len(gaps) or not parts:
        parts.append((first + resumes, usual))
    return parts


def _doubtful_bars(starts: Instants, gaps: Instants, usual: Instants) -> tuple[Instants, Instants]:
    """Bars that may be longer than their interval, and how long after its beginning each is known.

    Where the gap after a bar is unusual, the bar may reach to its end if that is as long as bars are made, else as
    far as such a gap beside it. The last bar has no gap after it: it may be as long as the one before.
    """
    if not len(gaps):
        return starts[:0], gaps
    whole = (gaps < 2 * usual[:-1]) | np.isin(gaps, _BAR_LENGTHS_NS)
    lengths = np.where(whole, gaps, 0)
    beside = np.maximum(np.append(0, lengths[:-1]), np.append(lengths[1:], 0))
    reach = np.minimum(gaps, np.maximum(usual[:-1], beside))
    longest = np.append(np.where(whole, gaps, reach), gaps[-1] if whole[-1] else 0)
    where = np.flatnonzero((usual > 0) & (longest > usual))
    return starts[where], longest[where]


def _disagreement(symbol: str, stated: str, stated_ns: int, length_ns: int, gaps: Instants) -> str:
    """Why the spacing does not allow bars of the stated interval; '' where it does, or where it is not evidence."""
    if not stated_ns or not length_ns or _OVERLAP * stated_ns <= length_ns < _APART * stated_ns:
        return ""
    count = int((gaps == length_ns).sum())
    if count < _SURE_COUNT or count < _SURE_SHARE * len(gaps):
        return ""
    spacing = format_duration(length_ns)
    if length_ns < stated_ns:
        return f"rows of {symbol} are {spacing} apart and {stated} is stated: its bars would overlap"
    return f"rows of {symbol} are {spacing} apart and {stated} is stated: its bars may be longer than stated"


def _interval_name(length_ns: int) -> str:
    """The interval of bars of this length; '' for a length that no bar has."""
    if not BAR_LENGTH_LIMITS_NS[0] <= length_ns <= BAR_LENGTH_LIMITS_NS[1]:
        return ""
    name = format_duration(length_ns)
    return name if parse_duration(name) == length_ns else ""


def _unknown_length(symbol: str, num_rows: int) -> str:
    why = "it has one row" if num_rows == 1 else f"its {num_rows} rows are not evenly spaced"
    return (
        f"the length of bars of {symbol} cannot be determined, {why}: state `interval`, or map a column to it"
    )


def _calendar_gaps(gaps: Instants) -> Instants:
    for shortest, longest in _SPANS_OF_DAYS:
        inside = (gaps >= shortest * NS_PER_DAY) & (gaps <= longest * NS_PER_DAY)
        gaps = np.where(inside, longest * NS_PER_DAY, gaps)
    return gaps
