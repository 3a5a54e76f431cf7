"""Scheduled announcements and their plausible outcomes, likeliest first, with the headlines that stand for them.

Keys of outcomes: 'hold', 'cut 25', 'raise 50' (basis points); 'far above', 'above', 'in line', 'below', 'far below'
(against consensus); 'beat, raised', 'miss, kept' and so on (results against estimates, and the outlook).
"""

import tomllib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from importlib.resources import files
from types import MappingProxyType

import msgspec

from htfi.domain.scheduled_event import ScheduledEvent


class AnnouncementKind(StrEnum):
    """What is announced; each kind has outcomes of its own."""

    RATE = "rate_decision"
    CPI = "cpi"
    PAYROLLS = "payrolls"
    GDP = "gdp"
    EARNINGS = "earnings"


class Announcement(msgspec.Struct, frozen=True):
    """One entry of a calendar.

    `subject` is who decides or is measured: a bank's key ('fed'), a region's ('us'), a company's name. `names` are
    further names that a headline may give it. Without `symbols` it concerns the whole market. `publishers` are those
    whose items may report it, any if none is named.

    Units: `level` is the policy rate before, in percent, `series` the macro series that gives it otherwise; `consensus`
    is in percent (CPI, GDP), thousands of jobs (payrolls) or currency per share (earnings); `basis` is what the percent
    are of: 'mom', 'yoy', 'qoq' or 'annualised'. `odds` are pairs of an outcome's key and its weight; without them the
    kind's usual ones hold.
    """

    id: str
    kind: AnnouncementKind
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


class AnnouncementOutcome(msgspec.Struct, frozen=True):
    """A plausible outcome: its key, its probability, a headline for it, and a few words."""

    key: str
    probability: float
    headline: str
    words: str


class Calendar(msgspec.Struct, frozen=True):
    """Announcements by rising `at_ns`, all scheduled events by rising time, and the digest (hex) of what they come
    from.
    """

    releases: tuple[Announcement, ...] = ()
    digest: str = ""
    events: tuple[ScheduledEvent, ...] = ()


_NAMES: Mapping[str, Mapping[str, Sequence[str]]] = tomllib.loads(
    files("htfi.narrative.calendar").joinpath("names.toml").read_text(encoding="utf-8")
)
CENTRAL_BANKS = {key: tuple(names) for key, names in _NAMES["central_banks"].items()}
REGIONS = {key: tuple(names) for key, names in _NAMES["regions"].items()}
OTHER_PLACES = tuple(_NAMES["other"]["places"])


MIN_POLICY_RATE = -1.0  # percent: no outcome is prepared with a lower policy rate
MIN_LARGE_SURPRISE: Mapping[AnnouncementKind, float] = MappingProxyType(
    {AnnouncementKind.CPI: 0.2, AnnouncementKind.GDP: 1.0, AnnouncementKind.PAYROLLS: 75.0}
)  # from here on a surprise is a large one
MIN_SURPRISE: Mapping[AnnouncementKind, float] = MappingProxyType(
    {AnnouncementKind.CPI: 0.05, AnnouncementKind.GDP: 0.1, AnnouncementKind.PAYROLLS: 10.0}
)  # below this a figure is in line

_SURPRISE_ODDS = {"in line": 0.30, "above": 0.25, "below": 0.25, "far above": 0.10, "far below": 0.10}
_USUAL_ODDS: dict[AnnouncementKind, dict[str, float]] = {
    AnnouncementKind.RATE: {
        "hold": 0.60, "cut 25": 0.13, "raise 25": 0.13, "cut 50": 0.06, "raise 50": 0.04, "cut 75": 0.02,
        "raise 75": 0.02,
    },
    AnnouncementKind.CPI: _SURPRISE_ODDS,
    AnnouncementKind.PAYROLLS: _SURPRISE_ODDS,
    AnnouncementKind.GDP: _SURPRISE_ODDS,
    AnnouncementKind.EARNINGS: {
        "beat, kept": 0.35, "beat, raised": 0.15, "miss, kept": 0.12, "in line, kept": 0.10, "miss, cut": 0.10,
        "beat, cut": 0.07, "in line, raised": 0.04, "in line, cut": 0.04, "miss, raised": 0.03,
    },
}  # fmt: skip
_MEASURE_RISES = {
    AnnouncementKind.CPI: "consumer prices rise",
    AnnouncementKind.PAYROLLS: "payrolls rise",
    AnnouncementKind.GDP: "GDP grows",
}
_SURPRISE_WORDS = {
    "far above": "far more than expected",
    "above": "more than expected",
    "in line": "as expected",
    "below": "less than expected",
    "far below": "far less than expected",
}
_RESULT_WORDS = {
    "beat": "beats profit estimates",
    "in line": "meets profit estimates",
    "miss": "misses profit estimates",
}
_OUTLOOK_WORDS = {"kept": "", "raised": ", raises outlook", "cut": ", cuts outlook"}


def outcome_keys(kind: AnnouncementKind) -> tuple[str, ...]:
    """The outcomes that a calendar may give odds for."""
    return tuple(_USUAL_ODDS[kind])


def likely_outcomes(release: Announcement, level: float | None = None) -> tuple[AnnouncementOutcome, ...]:
    """Plausible outcomes, likeliest first; `level` is the policy rate before, in percent, if known."""
    odds = dict(release.odds) or _USUAL_ODDS[release.kind]
    if level is not None and release.kind is AnnouncementKind.RATE:
        odds = {
            key: share for key, share in odds.items() if level + change_bp(key) / 100.0 >= MIN_POLICY_RATE
        }
    total = sum(odds.values())
    found = [
        AnnouncementOutcome(
            key, share / total, _outcome_headline(release, key, level), describe_outcome(release.kind, key)
        )
        for key, share in odds.items()
        if share > 0.0
    ]
    return tuple(sorted(found, key=lambda outcome: -outcome.probability))


def change_bp(key: str) -> int:
    """The change of a policy rate that a key names, in basis points."""
    if key == "hold":
        return 0
    way, _, size = key.partition(" ")
    return int(size) if way == "raise" else -int(size)


def rate_key(bp: int) -> str:
    """The inverse of `change_bp`."""
    return f"{'raise' if bp > 0 else 'cut'} {abs(bp)}" if bp else "hold"


def surprise_key(kind: AnnouncementKind, actual: float, consensus: float) -> str:
    """How a figure compares with what was expected, both in the units of `Announcement.consensus`."""
    gap = round(actual - consensus, 6)
    if abs(gap) < MIN_SURPRISE[kind]:
        return "in line"
    side = "above" if gap > 0 else "below"
    return f"far {side}" if abs(gap) >= MIN_LARGE_SURPRISE[kind] - 1e-9 else side


def describe_outcome(kind: AnnouncementKind, key: str) -> str:
    """An outcome in a few words."""
    if kind is AnnouncementKind.RATE:
        way, _, size = key.partition(" ")
        return {"hold": "no change", "cut": f"a cut of {size} bp", "raise": f"a rise of {size} bp"}[way]
    if kind is AnnouncementKind.EARNINGS:
        result, _, outlook = key.partition(", ")
        outlook_text = {"kept": "no new outlook", "raised": "outlook raised", "cut": "outlook cut"}[outlook]
        return (
            f"{'a beat' if result == 'beat' else 'a miss' if result == 'miss' else 'in line'}, {outlook_text}"
        )
    return _SURPRISE_WORDS[key]


def _outcome_headline(release: Announcement, key: str, level: float | None) -> str:
    if release.kind is AnnouncementKind.RATE:
        return _rate_headline(_first_name(CENTRAL_BANKS, release), key, level)
    if release.kind is AnnouncementKind.EARNINGS:
        result, _, outlook = key.partition(", ")
        return f"{release.subject} {_RESULT_WORDS[result]}{_OUTLOOK_WORDS[outlook]}"
    return f"{_first_name(REGIONS, release)} {_MEASURE_RISES[release.kind]} {_SURPRISE_WORDS[key]}"


def _rate_headline(bank: str, key: str, level: float | None) -> str:
    change = change_bp(key)
    at_level = f" {'at' if not change else 'to'} {level + change / 100.0:.2f}%" if level is not None else ""
    if not change:
        return f"{bank} leaves its target rate unchanged{at_level}"
    return f"{bank} {'raises' if change > 0 else 'cuts'} its target rate by {abs(change)} bp{at_level}"


def _first_name(known: Mapping[str, tuple[str, ...]], release: Announcement) -> str:
    names = known.get(release.subject) or release.names
    return names[0] if names else release.subject
