"""Finds the roles of the parties of one event by the wording of its sentence: buyer and bought, rater and rated,
plaintiff and defendant, supplier and customer, winner and loser. Verb and order tell who does it to whom.

The wordings are in `party_roles.toml`, tried in order over a text in which names are numbered, so that no rule hangs on
a name.
"""

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from htfi.narrative.facts.record import EventKind, PartyRole
from htfi.narrative.patterns import Patterns

_MAX_GAP_CHARS = 80  # between two parts of a wording, without a name
_NAME = r"§\d+"
_LIST = rf"{_NAME}(?:(?:, and |, | and | & | or |-|/){_NAME})*"
_GAP = rf"(?!\w)[^§;:]{{1,{_MAX_GAP_CHARS}}}?(?<!\w)"
_FAR = r"(?!\w)[^;]+?(?<!\w)"
_SLOT = re.compile(r"<(\w+?)(\d?)(\+?)>")
_PARTS = re.compile(r"(\s\.\.\.?\s|<\w+\+?>)")
# What is taken out of a text or ends a clause in it.
_BRACKETS = re.compile(r"\s*\([^()]{0,40}\)")
_CLAUSE_ENDS = re.compile(r"\s[-–—]{1,2}\s|(?<=[a-z%]{3})\.\s|\.\.\.|…|[?!]\s|\s\|\s")
_QUOTES = re.compile(r"[\"“”‘*]")


@dataclass(frozen=True, slots=True)
class _Wording:
    """One wording of an event of `kinds`; its groups are named after the roles that they give."""

    kinds: frozenset[EventKind]
    pattern: re.Pattern[str]
    when: re.Pattern[str] | None
    unless: re.Pattern[str] | None


def roles_by_wording(
    text: str, spans: Sequence[tuple[int, int]], parties: Sequence[int], kinds: AbstractSet[EventKind]
) -> dict[int, PartyRole]:
    """The role of each party that a wording of an event of these kinds gives one.

    `spans` are the places of the names in the order of the text, none over another; `parties` number them: names of one
    company have one number.
    """
    if not spans:
        return {}
    masked = _masked(text, spans, parties)
    found: dict[int, PartyRole] = {}
    for wording in _WORDINGS:
        if wording.kinds.isdisjoint(kinds):
            continue
        if wording.when is not None and wording.when.search(masked) is None:
            continue
        if wording.unless is not None and wording.unless.search(masked) is not None:
            continue
        for match in wording.pattern.finditer(masked):
            given = dict(_given(match))
            if all(found.get(party, role) is role for party, role in given.items()):
                found |= given
    return found


def _given(match: re.Match[str]) -> Iterator[tuple[int, PartyRole]]:
    for group, names in match.groupdict().items():
        for name in re.findall(_NAME, names or ""):
            yield int(name[1:]), PartyRole(group.rstrip("0123456789"))


def _masked(text: str, spans: Sequence[tuple[int, int]], parties: Sequence[int]) -> str:
    """The text in lower case with numbers for names; what ends a clause is a semicolon."""
    parts: list[str] = []
    after = 0
    for (start, end), party in zip(spans, parties, strict=True):
        parts += [text[after:start], f"§{party}"]
        after = end
    whole = "".join([*parts, text[after:]]).lower().replace("’", "'")
    whole = _CLAUSE_ENDS.sub(" ; ", _QUOTES.sub("", _BRACKETS.sub("", whole)))
    return " ".join(re.sub(r"^\W*(§\d+): (?=to |in |buys|agrees)", r"\1 ", whole).split())


def _compiled(kinds: frozenset[EventKind], entry: dict[str, str]) -> _Wording:
    def slot(match: re.Match[str]) -> str:
        return f"(?P<{match[1]}{match[2]}>{_LIST if match[3] else _NAME})"

    pattern = ""
    for part in _PARTS.split(entry["wording"]):
        if part == " .. ":
            pattern += _GAP
        elif part == " ... ":
            pattern += _FAR
        else:
            pattern += _SLOT.sub(slot, part)
    when, unless = (re.compile(entry[key]) if key in entry else None for key in ("when", "unless"))
    return _Wording(
        frozenset(EventKind) if "sure" in entry else kinds,
        re.compile(rf"(?<!\w){pattern}(?!\w)"),
        when,
        unless,
    )


_FAMILIES = Patterns("htfi.narrative.facts", "party_roles.toml", "kinds")
_ENTRIES = Patterns("htfi.narrative.facts", "party_roles.toml", "parts")
_WORDINGS = tuple(
    _compiled(frozenset(map(EventKind, _FAMILIES.words(family))), entry)
    for family in _FAMILIES.names()
    for entry in _ENTRIES.entries(family)
)
