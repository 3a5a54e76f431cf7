"""Matches a news archive's headlines to the Fed's decisions: how many are found, and how many wrongly. The bench of
buffering calls it where a folder of news is given.

Expected there: text_price/reuters_news_2006_2013.parquet (published_at, headline, lead), for evaluation only, and
central_bank/fomc_communications_1994_2024.parquet (release_date, type, text), whose statements are the bank's own.
"""

from bisect import bisect_left
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.events import News
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.narrative.calendar.announcements import Announcement, AnnouncementKind, rate_key
from htfi.narrative.calendar.matching import item_outcome
from htfi_eval.bench.fed_decisions import sample_policy_rates

NEWS = "text_price/reuters_news_2006_2013.parquet"
STATEMENTS = "central_bank/fomc_communications_1994_2024.parquet"
WINDOW_NS = 6 * 3_600 * NS_PER_S  # the archive's times are those of the last update
FED_ANNOUNCEMENT = Announcement("fomc", AnnouncementKind.RATE, 0, "fed")
FIRST_LEVEL = (
    5.25  # percent, June 2006 to September 2007; the sample's rates are 2007 to 2009, none changed beside
)
Row = dict[str, Any]
Columns = dict[str, NDArray[Any]]
Judged = tuple[
    int, int, int, int
]  # texts, decisions within them, those told rightly, texts that tell otherwise


def texts_rows(folder: Path) -> tuple[list[Row], dict[str, float], list[str]]:
    """Rows of the table, metrics and notes. Raises: InvalidInput where the folder has neither set."""
    rates = sample_policy_rates()
    rows: list[Row] = []
    figures: dict[str, float] = {}
    for name, path, judge in (("headlines", NEWS, _headlines), ("statements", STATEMENTS, _statements)):
        file = folder / path
        if not file.is_file():
            continue
        table = _columns(file)
        num, told, hits, wrong = judge(table, rates)
        rows.append(
            {
                "release": f"{name} of {file.name}",
                "headline": f"{num:,} texts, {told} decisions",
                "served": hits,
            }
        )
        figures |= {f"{name}_hits": hits / max(told, 1), f"{name}_wrong": float(wrong)}
    if not rows:
        raise InvalidInput(
            f"{folder} holds neither {NEWS} nor {STATEMENTS}: name a folder that does with --data"
        )
    return rows, figures, ["An archive's hits: decisions that at least one of its texts tells rightly."]


def _columns(file: Path) -> Columns:
    try:
        table: Any = import_module("pyarrow.parquet").read_table(file)
    except OSError as error:
        raise DependencyUnavailable(f"{file}: {error}: check the folder named by --data") from error
    return {name: table[name].to_numpy() for name in table.column_names}


def _level_before(rates: list[tuple[int, float]], at_ns: int) -> float:
    place = bisect_left(rates, (at_ns, 0.0))
    return rates[place - 1][1] if place else FIRST_LEVEL


def _headlines(table: Columns, rates: list[tuple[int, float]]) -> Judged:
    told: set[int] = set()
    wrong = 0
    times: list[int] = table["published_at"].astype("datetime64[ns]").astype(np.int64).tolist()
    for headline, lead, at_ns in zip(table["headline"], table["lead"], times, strict=True):
        place = bisect_left(rates, (at_ns, 9e9)) - 1
        decided_ns, now = rates[place] if place >= 0 else (0, FIRST_LEVEL)
        before = _level_before(rates, decided_ns if at_ns - decided_ns < NS_PER_DAY else at_ns)
        item = News(at_ns, at_ns, "archive", 1, "n", headline or "", body=lead or "")
        key = item_outcome(item, FED_ANNOUNCEMENT, before).key
        is_right = key == rate_key(round(100.0 * (now - before)))
        wrong += key is not None and not is_right
        if is_right and at_ns - decided_ns <= WINDOW_NS:
            told.add(decided_ns)
    num = sum(min(times) <= at_ns <= max(times) for at_ns, _ in rates)
    return len(times), num, len(told), wrong


def _statements(table: Columns, rates: list[tuple[int, float]]) -> Judged:
    """The same for the bank's own statements of the years that the sample covers."""
    by_day = {at_ns // NS_PER_DAY: (at_ns, value) for at_ns, value in rates}
    num = hits = wrong = 0
    days: list[int] = table["release_date"].astype("datetime64[D]").astype(np.int64).tolist()
    for kind, day, text in zip(table["type"], days, table["text"], strict=True):
        if kind != "statement" or day not in by_day:
            continue
        at_ns, value = by_day[day]
        before = _level_before(rates, at_ns)
        key = item_outcome(
            News(at_ns, at_ns, "archive", 1, "n", "FOMC statement", body=text or ""), FED_ANNOUNCEMENT, before
        ).key
        right = rate_key(round(100.0 * (value - before)))
        num += 1
        hits += key == right
        wrong += key is not None and key != right
    return num, num, hits, wrong
