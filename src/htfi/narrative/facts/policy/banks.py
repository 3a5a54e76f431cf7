"""Which central bank a text names or speaks for."""

import re

from htfi.narrative.calendar.announcements import CENTRAL_BANKS
from htfi.narrative.calendar.headlines import name_pattern, plain_letters
from htfi.narrative.patterns import Patterns

_MAX_CHARS = 40_000
_DATA = Patterns("htfi.narrative.facts.policy", "patterns.toml", "policy")
_WITHOUT_COUNTRY = frozenset({"ecb"})
_REGIONAL = _DATA.compiled("regional")
_COUNTRY = Patterns("htfi.narrative.facts.policy", "patterns.toml", "countries")
_BANKS = {key: re.compile(rf"\b{name_pattern(names)}(?![\w-])") for key, names in CENTRAL_BANKS.items()}
_COUNTRIES = [
    (key, re.compile(rf"(?:^|: )(?:{_COUNTRY.text(key)}){_COUNTRY.text('acts')}"))
    for key in CENTRAL_BANKS
    if key not in _WITHOUT_COUNTRY
]
_COMMITTEES = [(one["bank"], re.compile(one["pattern"])) for one in _DATA.entries("committees")]


def banks_in(plain: str) -> list[tuple[int, str]]:
    """Each mention of a central bank by name in plain letters: where it ends, and the bank's key. A regional bank, as
    in 'Richmond Fed', decides nothing.
    """
    return [
        (match.end(), key)
        for key, pattern in _BANKS.items()
        for match in pattern.finditer(plain)
        if not _REGIONAL.search(plain[: match.start()])
    ]


def bank_named(text: str) -> str:
    """The key of the first central bank that a text names, by its name or that of its committee; '' for none."""
    plain = plain_letters(" ".join(text[:_MAX_CHARS].split()))
    places = [(match.start(), key) for key, pattern in _BANKS.items() if (match := pattern.search(plain))]
    for others in (_COUNTRIES, _COMMITTEES):
        if not places:
            places = [(match.start(), key) for key, pattern in others if (match := pattern.search(plain))]
    return min(places)[1] if places else ""
