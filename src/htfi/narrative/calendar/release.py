"""A scheduled release and what may come of it, as values. The calendar's modules and the prepared reader use them."""

from enum import StrEnum

import msgspec


class Kind(StrEnum):
    """What is released; each kind has outcomes of its own."""

    RATE = "rate_decision"
    CPI = "cpi"
    PAYROLLS = "payrolls"
    GDP = "gdp"
    EARNINGS = "earnings"


DATA = frozenset({Kind.CPI, Kind.PAYROLLS, Kind.GDP})


class Release(msgspec.Struct, frozen=True):
    """One entry of a calendar.

    `subject` is who decides or is measured: a bank's key ('fed'), a region's ('us'), a company's name. `names` are
    further names that a headline may give it. No `symbols`: the whole market. `publishers` are those whose items may
    tell it, any where none is named.

    Units: `level` is the policy rate before, in percent, `series` the macro series that tells it where it is not
    given; `consensus` is in percent (CPI, GDP), thousands of jobs (payrolls) or currency per share (earnings);
    `basis` says what the percent are of: 'mom', 'yoy', 'qoq' or 'annualised'. `odds` are pairs of an outcome's key
    and its weight; without them the kind's usual ones stand.
    """

    id: str
    kind: Kind
    at_ns: int
    subject: str
    symbols: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    publishers: tuple[str, ...] = ()
    series: str = ""
    level: float | None = None
    consensus: float | None = None
    basis: str = ""
    odds: tuple[tuple[str, float], ...] = ()


class Outcome(msgspec.Struct, frozen=True):
    """One way a release may turn out: its key, how likely it is, a headline for it, and a few words."""

    key: str
    probability: float
    headline: str
    words: str


class Calendar(msgspec.Struct, frozen=True):
    """Releases by rising `at_ns`, and the digest (hex) of the text that they were read from."""

    releases: tuple[Release, ...] = ()
    digest: str = ""
