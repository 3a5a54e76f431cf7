"""Event studies: does the sign of a reading agree with the abnormal move, and how large are moves by kind of event?

Rows are one per symbol, session and phase. Intervals resample days. Controls: the same directions in another order, and
the same symbols twenty sessions earlier.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi_eval.eval.reading.moves import Moves, Window
from htfi_eval.eval.reading.scores import Array, Interval, Signs, as_signs, mean_by_day, ratio_by_day
from htfi_eval.eval.reading.staged_news import Phase, ReadEvent, StagedNews

STRONG_CONFIDENCE, STRONG_RELEVANCE = 0.75, 0.5
FIRST_UNSEEN_YEAR = 2010  # earlier years were looked at while the table of effects was made
MIN_KIND = 40  # events of a kind, from which it is shown

_WINDOWS = {
    Phase.OVERNIGHT: (Window.GAP, Window.REST, Window.NEXT, Window.WEEK),
    Phase.SESSION: (Window.DAY, Window.NEXT, Window.WEEK),
    Phase.DATED: (Window.DAY, Window.NEXT, Window.WEEK),
}
_ALL, _STRONG, _SHUFFLED = "all views", "strong views", "strong, in another order"


@dataclass(frozen=True, slots=True)
class EventTable:
    """The events of one source as columns [n]: place in the panel, and what was read."""

    name: str
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    phases: tuple[Phase, ...]
    direction: Signs
    strong: NDArray[np.bool_]
    volatility: Array
    size: Array
    kinds: tuple[str, ...]
    years: NDArray[np.int64]

    def inside(self, phase: Phase) -> NDArray[np.bool_]:
        return np.array([one is phase for one in self.phases], np.bool_)


def is_strong(event: ReadEvent) -> bool:
    """A view that is likely right and about the symbol itself."""
    read = event.read
    return read.speaks and read.confidence >= STRONG_CONFIDENCE and read.relevance >= STRONG_RELEVANCE


def as_table(news: StagedNews, events: Sequence[ReadEvent]) -> EventTable:
    column = {symbol: place for place, symbol in enumerate(news.prices.symbols)}
    rows = as_signs([event.item.row for event in events])
    years = news.prices.ends_ns.astype("datetime64[ns]").astype("datetime64[Y]").astype(np.int64) + 1970
    return EventTable(
        news.name,
        rows,
        as_signs([column[event.item.symbol] for event in events]),
        tuple(event.item.phase for event in events),
        as_signs([event.read.direction for event in events]),
        np.array([is_strong(event) for event in events], np.bool_),
        np.array([event.read.volatility for event in events], np.float64),
        np.array([event.read.size_sigmas for event in events], np.float64),
        tuple(event.read.event.value for event in events),
        years[rows] if len(rows) else rows,
    )


@dataclass(frozen=True, slots=True)
class SignStudy:
    """How often a group of views has the sign of the abnormal move in one window, and its mean size along the view."""

    source: str
    phase: Phase
    group: str
    window: Window
    agree: Interval
    along: Interval

    def row(self) -> dict[str, object]:
        return {
            "source": self.source, "phase": self.phase.value, "views": self.group, "move": self.window.value,
            "events": self.agree.num, "sign agrees": self.agree.text, "move along, usual days": self.along.text,
        }  # fmt: skip


def study_signs(table: EventTable, moves: Moves, seed: int) -> list[SignStudy]:
    """Every phase, group and window that has events."""
    rng = np.random.Generator(np.random.PCG64(seed))
    found: list[SignStudy] = []
    for phase, windows in _WINDOWS.items():
        inside = table.inside(phase) & (table.direction != 0)
        strong = inside & table.strong
        for group, chosen in ((_ALL, inside), (_STRONG, strong), (_SHUFFLED, strong)):
            direction = table.direction[chosen]
            if group == _SHUFFLED:
                direction = rng.permutation(direction)
            controls = (Window.EARLIER,) if group == _STRONG else ()
            for window in (*windows, *controls) if group != _SHUFFLED else windows[:1]:
                after = moves.by_window[window][table.rows[chosen], table.columns[chosen]]
                known = np.isfinite(after) & (after != 0.0)
                if known.sum() < MIN_KIND:
                    continue
                days = table.rows[chosen][known]
                signed = direction[known] * np.clip(after[known], -10.0, 10.0)
                found.append(
                    SignStudy(
                        table.name, phase, group, window,
                        mean_by_day((signed > 0.0).astype(np.float64), days, seed),
                        mean_by_day(signed, days, seed),
                    )
                )  # fmt: skip
    return found


def kind_rows(table: EventTable, moves: Moves, seed: int) -> list[dict[str, object]]:
    """By kind of event: the size of the day's move over a quiet day's, its sign, and what the reader said of it."""
    quiet = quiet_size(table, moves)
    day = moves.by_window[Window.DAY][table.rows, table.columns] if len(table.rows) else np.zeros(0)
    after = moves.by_window[Window.NEXT][table.rows, table.columns] if len(table.rows) else np.zeros(0)
    kinds = np.array(table.kinds)
    rows: list[dict[str, object]] = []
    groups = [("all events", np.ones(len(day), np.bool_)), ("strong views", table.strong),
              ("silent", table.direction == 0)]  # fmt: skip
    groups += [(kind.replace("_", " "), kinds == kind) for kind, _ in Counter(table.kinds).most_common()]
    for name, chosen in groups:
        known = chosen & np.isfinite(day)
        if known.sum() < MIN_KIND:
            continue
        row: dict[str, object] = {"source": table.name, "event": name, "events": int(known.sum())}
        for period, part in _periods(table, known):
            if part.sum() >= MIN_KIND // 2:
                row[f"times the usual{period}"] = _times(day[part], quiet, table.rows[part], seed)
        later = known & np.isfinite(after)
        row["the day after"] = _times(after[later], quiet, table.rows[later], seed)
        views = known & (table.direction != 0) & (day != 0.0)
        if views.sum() >= MIN_KIND // 2:
            agree = (table.direction[views] * day[views] > 0.0).astype(np.float64)
            row["sign agrees"] = mean_by_day(agree, table.rows[views], seed).text
        spoken = known & (table.volatility > 1.0)
        row["reader's volatility"] = float(table.volatility[spoken].mean()) if spoken.any() else None
        rows.append(row)
    return rows


def _periods(table: EventTable, known: NDArray[np.bool_]) -> list[tuple[str, NDArray[np.bool_]]]:
    early = known & (table.years < FIRST_UNSEEN_YEAR)
    if not early.any():
        return [("", known)]
    return [
        (f", to {FIRST_UNSEEN_YEAR - 1}", early),
        (f", since {FIRST_UNSEEN_YEAR}", known & (table.years >= FIRST_UNSEEN_YEAR)),
    ]


def _times(moves: Array, quiet: float, days: Signs, seed: int) -> str:
    sizes = np.minimum(np.abs(moves), 10.0)
    return ratio_by_day(sizes, np.full(len(sizes), quiet), days, seed).text


def quiet_size(table: EventTable, moves: Moves) -> float:
    """Mean absolute move of the symbols with events, in their sessions without any, that of the day before aside."""
    day = moves.by_window[Window.DAY]
    columns = np.unique(table.columns)
    quiet = np.isfinite(day[:, columns])
    place = {int(column): number for number, column in enumerate(columns.tolist())}
    for row, column in zip(table.rows.tolist(), table.columns.tolist(), strict=True):
        quiet[row : row + 2, place[column]] = False
    first, last = (int(table.rows.min()), int(table.rows.max())) if len(table.rows) else (0, 0)
    quiet[:first], quiet[last + 1 :] = False, False
    sizes = np.minimum(np.abs(day[:, columns][quiet]), 10.0)
    return float(sizes.mean()) if len(sizes) else float("nan")
