"""Which central bank a text names or speaks for."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from htfi.narrative.calendar.announcements import CENTRAL_BANKS
from htfi.narrative.calendar.headlines import name_pattern, plain_letters
from htfi.narrative.patterns import FilteredPattern, Patterns, PatternTable, deferred

_MAX_CHARS = 40_000
_DATA = Patterns("htfi.narrative.facts.policy", "patterns.toml", "policy")
_REGIONAL = _DATA.compiled("regional")
_COUNTRIES = {
    name: key
    for key, names in Patterns("htfi.narrative.facts.policy", "patterns.toml", "countries").items()
    for name in names.split(" | ")
}
_KEYS = {
    f"{before}{country}{behind}": key
    for country, key in _COUNTRIES.items()
    for before, behind in (("", " central bank"), ("", "'s central bank"), ("central bank of ", ""))
} | {plain_letters(name): key for key, names in CENTRAL_BANKS.items() for name in names}
_BANKS = FilteredPattern(rf"\b{name_pattern(tuple(_KEYS))}(?![\w-])")
_ACTS = Patterns("htfi.narrative.facts.policy", "patterns.toml", "country_acts").text("acts")
_COUNTRY = FilteredPattern(rf"(?:^|: |\*)(?P<name>{'|'.join(map(re.escape, _COUNTRIES))})(?={_ACTS})")
_COUNTRY_FIRST = deferred(rf"(?P<name>{'|'.join(map(re.escape, _COUNTRIES))})(?![\w'])")
_COMMITTEES = tuple(one["bank"] for one in _DATA.entries("committees"))
_COMMITTEE_TABLE = PatternTable(FilteredPattern(one["pattern"]) for one in _DATA.entries("committees"))


class BankMention(NamedTuple):
    """A central bank's name in a text, and the bank's key."""

    start: int
    end: int
    key: str


@lru_cache(maxsize=8)  # one text is asked about several times
def banks_in(plain: str) -> Sequence[BankMention]:
    """Each mention of a central bank in plain letters, by its name or by a country whose rates it moves: 'Poland cuts
    rates'. A regional bank, as in 'Richmond Fed', decides nothing.
    """
    found = [
        BankMention(match.start(), match.end(), _KEYS[match[0]])
        for match in _BANKS.finditer(plain)
        if not _REGIONAL.search(plain[: match.start()])
    ]
    country = _COUNTRY.search(plain)
    if country is None and found:
        country = _COUNTRY_FIRST.match(plain)
        country = country if country and _COUNTRIES[country["name"]] == found[0].key else None
    if country is not None:
        found.append(BankMention(*country.span("name"), _COUNTRIES[country["name"]]))
    return tuple(sorted(found))


def begins_with_country(plain: str) -> bool:
    """Whether plain letters begin with a country that has a central bank: 'Poland: rates unchanged'."""
    return _COUNTRY_FIRST.match(plain) is not None


def bank_named(text: str) -> str:
    """The key of the first central bank that a text names, by its name or that of its committee; '' for none."""
    plain = plain_letters(" ".join(text[:_MAX_CHARS].split()))
    named = banks_in(plain)
    return named[0].key if named else committee_named(plain)


def committee_named(plain: str) -> str:
    """The key of the bank whose committee plain letters name first; '' for none."""
    places = [
        (match.start(), _COMMITTEES[place])
        for place in _COMMITTEE_TABLE.candidates(plain)
        if (match := _COMMITTEE_TABLE.patterns[place].search(plain))
    ]
    return min(places)[1] if places else ""
