"""What central banks decided, known without reading a text: the Federal Reserve's target by date, a calendar's rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np

from htfi.narrative.facts.policy.action import PolicyMove
from htfi_eval.eval.reading.official import rows_of

CALENDAR = "calendar/cb_decisions_1999_201910.parquet"
_BANKS = {
    "FOMC": "fed",
    "ECB": "ecb",
    "BoE": "boe",
    "BoJ": "boj",
    "BoC": "boc",
    "RBA": "rba",
    "RBNZ": "rbnz",
    "SNB": "snb",
}


@dataclass(frozen=True, slots=True)
class RateDecision:
    """A decision: the bank's key, its day, the upper end of the rate in percent after and before it."""

    bank: str
    day: date
    level: float
    prior: float
    expected: float | None = None

    @property
    def change_bp(self) -> int:
        return round((self.level - self.prior) * 100.0)

    @property
    def move(self) -> PolicyMove:
        return (
            PolicyMove.HOLD
            if not self.change_bp
            else PolicyMove.RAISE
            if self.change_bp > 0
            else PolicyMove.CUT
        )

    @property
    def low(self) -> float:
        """The lower end: the Federal Reserve has set a range of a quarter point since 16 December 2008."""
        has_range = self.bank == "fed" and self.day >= date(2008, 12, 16)
        return self.level - 0.25 if has_range else self.level


def calendar_decisions(data: Path) -> Iterator[RateDecision]:
    """The calendar's decisions whose rate before and after is known."""
    columns = ("bank", "published_at", "event", "actual_num", "forecast_num", "previous_num")
    for bank, published, event, actual, expected, previous in rows_of(data / CALENDAR, *columns):
        if np.isfinite(actual) and np.isfinite(previous) and "Libor" not in event:
            forecast = float(expected) if np.isfinite(expected) else None
            yield RateDecision(_BANKS[bank], published, float(actual), float(previous), forecast)


# The target for the federal funds rate, the upper end of its range since 2008, in percent, from each day on.
# Source: the Federal Reserve's own list of changes, "Open Market Operations", federalreserve.gov.
_TARGETS = """
1994-01-01 3; 1994-02-04 3.25; 1994-03-22 3.5; 1994-04-18 3.75; 1994-05-17 4.25; 1994-08-16 4.75; 1994-11-15 5.5;
1995-02-01 6; 1995-07-06 5.75; 1995-12-19 5.5; 1996-01-31 5.25; 1997-03-25 5.5; 1998-09-29 5.25; 1998-10-15 5;
1998-11-17 4.75; 1999-06-30 5; 1999-08-24 5.25; 1999-11-16 5.5; 2000-02-02 5.75; 2000-03-21 6; 2000-05-16 6.5;
2001-01-03 6; 2001-01-31 5.5; 2001-03-20 5; 2001-04-18 4.5; 2001-05-15 4; 2001-06-27 3.75; 2001-08-21 3.5;
2001-09-17 3; 2001-10-02 2.5; 2001-11-06 2; 2001-12-11 1.75; 2002-11-06 1.25; 2003-06-25 1; 2004-06-30 1.25;
2004-08-10 1.5; 2004-09-21 1.75; 2004-11-10 2; 2004-12-14 2.25; 2005-02-02 2.5; 2005-03-22 2.75; 2005-05-03 3;
2005-06-30 3.25; 2005-08-09 3.5; 2005-09-20 3.75; 2005-11-01 4; 2005-12-13 4.25; 2006-01-31 4.5; 2006-03-28 4.75;
2006-05-10 5; 2006-06-29 5.25; 2007-09-18 4.75; 2007-10-31 4.5; 2007-12-11 4.25; 2008-01-22 3.5; 2008-01-30 3;
2008-03-18 2.25; 2008-04-30 2; 2008-10-08 1.5; 2008-10-29 1; 2008-12-16 0.25; 2015-12-16 0.5; 2016-12-14 0.75;
2017-03-15 1; 2017-06-14 1.25; 2017-12-13 1.5; 2018-03-21 1.75; 2018-06-13 2; 2018-09-26 2.25; 2018-12-19 2.5;
2019-07-31 2.25; 2019-09-18 2; 2019-10-30 1.75; 2020-03-03 1.25; 2020-03-15 0.25; 2022-03-16 0.5; 2022-05-04 1;
2022-06-15 1.75; 2022-07-27 2.5; 2022-09-21 3.25; 2022-11-02 4; 2022-12-14 4.5; 2023-02-01 4.75; 2023-03-22 5;
2023-05-03 5.25; 2023-07-26 5.5; 2024-09-18 5; 2024-11-07 4.75; 2024-12-18 4.5"""
_STEPS = [
    (date.fromisoformat(day), float(level))
    for day, level in (entry.split() for entry in _TARGETS.replace("\n", " ").split(";"))
]
# Statements that decide nothing on the policy rate: on liquidity, the discount rate, swap lines, bills, purchases.
NO_RATE_DECISION = frozenset(
    date.fromisoformat(day)
    for day in ("2007-08-10", "2007-08-17", "2008-03-11", "2010-05-09", "2019-10-04", "2020-03-23")
)


def fed_decision(day: date) -> RateDecision:
    """What the Federal Open Market Committee decided on a day of one of its statements."""
    level = [target for since, target in _STEPS if since <= day][-1]
    prior = [target for since, target in _STEPS if since < day][-1]
    return RateDecision("fed", day, level, prior)
