"""What a release may turn out to say: outcomes, likeliest first, with headlines of ours. Matching tells their keys.

Keys: 'hold', 'cut 25', 'raise 50' (basis points); 'far above', 'above', 'in line', 'below', 'far below' (consensus);
'beat, raised', 'miss, kept' and so on (results against estimates, and the outlook).
"""

from collections.abc import Mapping
from types import MappingProxyType

from htfi.narrative.calendar.names import BANKS, REGIONS
from htfi.narrative.calendar.release import Kind, Outcome, Release

LEAST_LEVEL = -1.0  # percent: no policy rate is prepared to fall below it
FAR: Mapping[Kind, float] = MappingProxyType(
    {Kind.CPI: 0.2, Kind.GDP: 1.0, Kind.PAYROLLS: 75.0}
)  # a surprise of at least so much is a big one
NEAR: Mapping[Kind, float] = MappingProxyType(
    {Kind.CPI: 0.05, Kind.GDP: 0.1, Kind.PAYROLLS: 10.0}
)  # one of less than so much is none

_SURPRISE_ODDS = {"in line": 0.30, "above": 0.25, "below": 0.25, "far above": 0.10, "far below": 0.10}
_USUAL: dict[Kind, dict[str, float]] = {
    Kind.RATE: {
        "hold": 0.60, "cut 25": 0.13, "raise 25": 0.13, "cut 50": 0.06, "raise 50": 0.04, "cut 75": 0.02,
        "raise 75": 0.02,
    },
    Kind.CPI: _SURPRISE_ODDS,
    Kind.PAYROLLS: _SURPRISE_ODDS,
    Kind.GDP: _SURPRISE_ODDS,
    Kind.EARNINGS: {
        "beat, kept": 0.35, "beat, raised": 0.15, "miss, kept": 0.12, "in line, kept": 0.10, "miss, cut": 0.10,
        "beat, cut": 0.07, "in line, raised": 0.04, "in line, cut": 0.04, "miss, raised": 0.03,
    },
}  # fmt: skip
_MEASURES = {
    Kind.CPI: "consumer prices rise",
    Kind.PAYROLLS: "payrolls rise",
    Kind.GDP: "GDP grows",
}
_SURPRISED = {
    "far above": "far more than expected",
    "above": "more than expected",
    "in line": "as expected",
    "below": "less than expected",
    "far below": "far less than expected",
}
_RESULT = {
    "beat": "beats profit estimates",
    "in line": "meets profit estimates",
    "miss": "misses profit estimates",
}
_OUTLOOK = {"kept": "", "raised": ", raises outlook", "cut": ", cuts outlook"}


def keys(kind: Kind) -> tuple[str, ...]:
    """The outcomes that a calendar may give odds for."""
    return tuple(_USUAL[kind])


def outcomes(release: Release, level: float | None = None) -> tuple[Outcome, ...]:
    """Plausible outcomes, likeliest first; `level` is the policy rate before, in percent, where it is known."""
    odds = dict(release.odds) or _USUAL[release.kind]
    if level is not None and release.kind is Kind.RATE:
        odds = {key: share for key, share in odds.items() if level + change_bp(key) / 100.0 >= LEAST_LEVEL}
    total = sum(odds.values())
    found = [
        Outcome(key, share / total, _headline(release, key, level), describe(release.kind, key))
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


def surprise_key(kind: Kind, actual: float, consensus: float) -> str:
    """How a figure stands to what was expected, both in the units of `Release.consensus`."""
    gap = round(actual - consensus, 6)
    if abs(gap) < NEAR[kind]:
        return "in line"
    side = "above" if gap > 0 else "below"
    return f"far {side}" if abs(gap) >= FAR[kind] - 1e-9 else side


def describe(kind: Kind, key: str) -> str:
    """An outcome in a few words."""
    if kind is Kind.RATE:
        way, _, size = key.partition(" ")
        return {"hold": "no change", "cut": f"a cut of {size} bp", "raise": f"a rise of {size} bp"}[way]
    if kind is Kind.EARNINGS:
        result, _, outlook = key.partition(", ")
        said = {"kept": "no new outlook", "raised": "outlook raised", "cut": "outlook cut"}[outlook]
        return f"{'a beat' if result == 'beat' else 'a miss' if result == 'miss' else 'in line'}, {said}"
    return _SURPRISED[key]


def _headline(release: Release, key: str, level: float | None) -> str:
    if release.kind is Kind.RATE:
        return _rate_headline(_called(BANKS, release), key, level)
    if release.kind is Kind.EARNINGS:
        result, _, outlook = key.partition(", ")
        return f"{release.subject} {_RESULT[result]}{_OUTLOOK[outlook]}"
    return f"{_called(REGIONS, release)} {_MEASURES[release.kind]} {_SURPRISED[key]}"


def _rate_headline(bank: str, key: str, level: float | None) -> str:
    change = change_bp(key)
    told = f" {'at' if not change else 'to'} {level + change / 100.0:.2f}%" if level is not None else ""
    if not change:
        return f"{bank} leaves its target rate unchanged{told}"
    return f"{bank} {'raises' if change > 0 else 'cuts'} its target rate by {abs(change)} bp{told}"


def _called(known: Mapping[str, tuple[str, ...]], release: Release) -> str:
    names = known.get(release.subject) or release.names
    return names[0] if names else release.subject
