"""Finds the roles of the parties of one event by the wording of its sentence: buyer and bought, rater and rated,
plaintiff and defendant, supplier and customer, winner and loser. Verb and order tell who does it to whom.

The wordings are in `party_roles.toml`, tried in order over a text in which names are numbered, so that no rule hangs on
a name.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from htfi.narrative.facts.record import EventKind, PartyRole
from htfi.narrative.patterns import FilteredPattern, Patterns, PatternTable

_MAX_GAP_CHARS = 80  # between two parts of a wording, without a name
_NAME = r"§\d+"
_NAMES = _ENDS_IN_NAME = re.compile(_NAME)
_LIST = rf"{_NAME}(?:(?:, and |, | and | & | or |-|/){_NAME})*"
_GAPS = {
    " .. ": rf"(?!\w)[^§;:]{{1,{_MAX_GAP_CHARS}}}?(?<!\w)",
    " ... ": r"(?!\w)[^;]+?(?<!\w)",
}
_BETWEEN = re.compile(r" \.\.\.? ")
_SLOT = re.compile(r"<(\w+?)(\d?)(\+?)>")
_ENDS_IN_SLOT = re.compile(r"<\w+>\$$")
# What is taken out of a text or ends a clause in it.
_BRACKETS = re.compile(r"\s*\([^()]{0,40}\)")
_CLAUSE_ENDS = re.compile(r"\s[-–—]{1,2}\s|(?<=[a-z%]{3})\.\s|\.\.\.|…|[?!]\s|\s\|\s")
_CLAUSE_SIGNS = (". ", " -", "..", "?", "!", "|", "–", "—", "…")  # of which `_CLAUSE_ENDS` needs one
_QUOTES = '"“”‘*'
_HEADED = re.compile(r"^\W*(§\d+): (?=to |in |buys|agrees)")  # '§1: to buy'


@dataclass(frozen=True, slots=True)
class _Wording:
    """One wording of an event of `kinds`; its groups are named after the roles that they give."""

    kinds: frozenset[EventKind]
    pattern: FilteredPattern
    num_names: int  # that it needs at least
    ends_in_name: bool  # with which the text ends
    when: FilteredPattern | None
    unless: FilteredPattern | None

    def roles_in(self, masked: str) -> list[dict[int, PartyRole]]:
        """The roles that each place which holds it gives to parties, by their numbers."""
        found = [dict(_given(match)) for match in self.pattern.finditer(masked)]
        if not found or (self.when is not None and self.when.search(masked) is None):
            return []
        return [] if self.unless is not None and self.unless.search(masked) is not None else found


class WordingRoles(NamedTuple):
    """The role of each party by its number: by wordings for the kinds of event in question, and by all wordings."""

    of_kinds: dict[int, PartyRole]
    of_any: dict[int, PartyRole]


def roles_by_wording(
    text: str, spans: Sequence[tuple[int, int]], parties: Sequence[int], kinds: AbstractSet[EventKind]
) -> WordingRoles:
    """The roles that wordings of an event of these kinds give, and those by wordings of any event.

    `spans` are the places of the names in the order of the text, none over another; `parties` number them: names of one
    company have one number.
    """
    if not spans:
        return WordingRoles({}, {})
    masked, numbers = _masked(text, spans, parties), set(parties)
    wordings, table = _WORDINGS_BY_NAMES[min(len(numbers), len(_WORDINGS_BY_NAMES)) - 1]
    possible = [wordings[place] for place in table.candidates(masked)]
    if not _ENDS_IN_NAME.fullmatch(masked[masked.rfind("§") :]):
        possible = [one for one in possible if not one.ends_in_name]
    found = [
        wording.roles_in(masked) if not wording.kinds.isdisjoint(kinds) else None for wording in possible
    ]
    of_kinds = _merged((roles for roles in found if roles), numbers)
    if of_kinds.keys() >= numbers:
        return WordingRoles(of_kinds, of_kinds)
    every = (
        wording.roles_in(masked) if roles is None else roles
        for wording, roles in zip(possible, found, strict=True)
    )
    return WordingRoles(of_kinds, _merged(every, numbers))


def _merged(
    places: Iterable[Sequence[dict[int, PartyRole]]], parties: AbstractSet[int]
) -> dict[int, PartyRole]:
    """What was found first counts; what would change a role of it is passed over. Nothing more is looked for once every
    one of the `parties` has its role.
    """
    merged: dict[int, PartyRole] = {}
    for given in chain.from_iterable(places):
        if all(merged.get(party, role) is role for party, role in given.items()):
            merged |= given
            if merged.keys() >= parties:
                break
    return merged


def _given(match: re.Match[str]) -> Iterator[tuple[int, PartyRole]]:
    for group, names in match.groupdict().items():
        for name in _NAMES.findall(names or ""):
            yield int(name[1:]), PartyRole(group.rstrip("0123456789"))


def _masked(text: str, spans: Sequence[tuple[int, int]], parties: Sequence[int]) -> str:
    """The text in lower case with numbers for names; what ends a clause is a semicolon."""
    parts: list[str] = []
    after = 0
    for (start, end), party in zip(spans, parties, strict=True):
        parts += [text[after:start], f"§{party}"]
        after = end
    whole = "".join([*parts, text[after:]]).lower().replace("’", "'")
    if "(" in whole:
        whole = _BRACKETS.sub("", whole)
    for sign in _QUOTES:
        if sign in whole:
            whole = whole.replace(sign, "")
    if any(sign in whole for sign in _CLAUSE_SIGNS):
        whole = _CLAUSE_ENDS.sub(" ; ", whole)
    if ": " in whole:
        whole = _HEADED.sub(r"\1 ", whole)
    return " ".join(whole.split())


def _wording(kinds: frozenset[EventKind], entry: dict[str, str]) -> _Wording:
    def slot(match: re.Match[str]) -> str:
        return f"(?P<{match[1]}{match[2]}>{_LIST if match[3] else _NAME})"

    pattern = _BETWEEN.sub(lambda found: _GAPS[found[0]], _SLOT.sub(slot, entry["wording"]))
    when, unless = (FilteredPattern(entry[key]) if key in entry else None for key in ("when", "unless"))
    # A pattern that begins with a name's mark is searched for by it, which is several times as fast.
    start = "" if pattern.startswith("(?P<") else r"(?<!\w)"
    return _Wording(
        frozenset(EventKind) if "sure" in entry else kinds,
        FilteredPattern(rf"{start}{pattern}(?!\w)"),
        len(_SLOT.findall(entry["wording"])),
        _ENDS_IN_SLOT.search(entry["wording"]) is not None,
        when,
        unless,
    )


_FAMILIES = Patterns("htfi.narrative.facts", "party_roles.toml", "kinds")
_ENTRIES = Patterns("htfi.narrative.facts", "party_roles.toml", "parts")
_WORDINGS = tuple(
    _wording(frozenset(map(EventKind, _FAMILIES.words(family))), entry)
    for family in _FAMILIES.names()
    for entry in _ENTRIES.entries(family)
)
_MAX_NAMES = max(one.num_names for one in _WORDINGS)


def _of_names(num: int) -> tuple[Sequence[_Wording], PatternTable]:
    """The wordings of texts with so many names."""
    wordings = [one for one in _WORDINGS if one.num_names <= num]
    return wordings, PatternTable(one.pattern for one in wordings)


_WORDINGS_BY_NAMES = tuple(_of_names(num) for num in range(1, _MAX_NAMES + 1))
