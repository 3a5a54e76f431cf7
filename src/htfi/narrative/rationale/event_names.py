"""What is known of a coming bar in words: 'holds US payrolls (13:30 UTC)', 'is a half day', 'follows a weekend'.

Version 7 of the rationale is written with these, so what they give for a recorded value may not change: a version with
other words brings its own.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from htfi.domain.decision import EventFactor
from htfi.domain.time import format_ns
from htfi.narrative.text import clean, quote

_CANONICAL = re.compile(r"[a-z0-9_]+")
_MAX_NAME_CHARS = 60
_MINUTES = slice(11, 16)  # of an instant as it is written
# Of days and hours that are no events: what the bar itself is.
_BARS = {
    "half_day": "is a half day",
    "year_end": "falls at the year's end",
    "before_year_end": "falls shortly before the year's end",
    "before_holiday": "is the last before a holiday",
    "two_before_holiday": "is the last but one before a holiday",
    "market_closed": "falls on a day on which New York is closed",
    "gap_midweek": "follows a day without trading",
    "gap_weekend": "follows a weekend",
    "gap_long": "follows a long weekend",
}
_COUNTRIES = {
    "us": "US", "ea": "euro-area", "de": "German", "fr": "French", "it": "Italian", "es": "Spanish", "gr": "Greek",
    "nl": "Dutch", "at": "Austrian", "be": "Belgian", "ie": "Irish", "pt": "Portuguese", "fi": "Finnish", "uk": "UK",
    "jp": "Japanese", "ca": "Canadian", "ch": "Swiss", "au": "Australian", "nz": "New Zealand", "cn": "Chinese",
    "se": "Swedish", "no": "Norwegian", "dk": "Danish", "mx": "Mexican", "za": "South African", "tr": "Turkish",
    "pl": "Polish", "hu": "Hungarian", "cz": "Czech", "kr": "South Korean", "in": "Indian", "br": "Brazilian",
    "ru": "Russian", "il": "Israeli", "sg": "Singapore", "hk": "Hong Kong", "tw": "Taiwanese", "id": "Indonesian",
    "th": "Thai",
}  # fmt: skip
_BANKS = {
    "fomc": "FOMC", "ecb": "ECB", "boe": "Bank of England", "boj": "Bank of Japan", "snb": "Swiss National Bank",
    "boc": "Bank of Canada", "rba": "Reserve Bank of Australia", "rbnz": "Reserve Bank of New Zealand",
    "pboc": "People's Bank of China", "banxico": "Bank of Mexico", "fed": "Fed",
}  # fmt: skip
_SPEAKERS = {"chair": "chair", "president": "president", "governor": "governor", "member": "board"}
_WHOLE = {
    "earnings": "the company's results",
    "option_expiry": "the expiry of options",
    "bank_holiday": "a bank holiday",
    "market_half_day": "an early close",
    "tokyo_cpi": "Tokyo's consumer prices",
    "us_treasury_secretary_speaks": "a speech of the US Treasury secretary",
    "us_president_speaks": "a speech of the US president",
    "uk_prime_minister_speaks": "a speech of the UK prime minister",
    "jackson_hole": "the Jackson Hole meeting",
    "opec_meeting": "a meeting of OPEC",
    "imf_meeting": "a meeting of the IMF",
    "g7_meeting": "a meeting of the G7",
    "g20_meeting": "a meeting of the G20",
    "ea_summit": "a euro-area summit",
}
_WORDS = {
    "cpi": "consumer prices", "ppi": "producer prices", "pce": "prices of consumer spending", "gdp": "GDP",
    "pmi": "PMI", "adp": "ADP", "ism": "ISM", "ifo": "Ifo index", "zew": "ZEW index", "kof": "KOF index",
    "tankan": "Tankan survey", "ivey": "Ivey", "philly": "Philadelphia", "empire": "Empire", "tic": "TIC",
    "earnings": "wages",
}  # fmt: skip


def known_words(events: Sequence[EventFactor], *, with_times: bool) -> str:
    """What a bar holds, follows and is, strongest first; with the times of day of what it holds."""
    if not events:
        return "holds several small events"
    clauses: list[str] = []
    held: dict[str, list[str]] = {}  # what the bar holds, by its time of day
    for one in events:
        if one.kind in _BARS:
            clauses.append(_BARS[one.kind])
        elif one.follows is True:
            clauses.append(f"follows {event_name(one.kind)}")
        else:
            time = f" ({format_ns(one.time_ns)[_MINUTES]} UTC)" if with_times else ""
            held.setdefault(time, []).append(event_name(one.kind))
    if held:
        listed = [f"{_joined(names)}{time}" for time, names in held.items()]
        clauses.insert(0, f"holds {_joined(listed)}")
    return _joined(clauses)


@lru_cache(maxsize=1024)
def event_name(kind: str) -> str:
    """'us_payrolls' → 'US payrolls', 'fomc_decision' → 'the decision of the FOMC'; a calendar's own words quoted."""
    if kind in _WHOLE:
        return _WHOLE[kind]
    if not _CANONICAL.fullmatch(kind):
        return quote(clean(kind, _MAX_NAME_CHARS))
    first, *rest = kind.split("_")
    if first in _BANKS and rest:
        bank = _BANKS[first]
        if rest[-1] == "speaks":
            return f"a speech from the {bank}'s {_SPEAKERS.get(rest[0], ' '.join(rest[:-1]))}"
        return f"the {' '.join(rest)} of the {bank}"
    if rest and rest[-1] == "speaks":
        rest = [*rest[:-1], "speech"]
    named = _COUNTRIES.get(first, _WORDS.get(first, first))
    return " ".join([named, *(_WORDS.get(word, word) for word in rest)])


def _joined(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]
