"""Labelled lines that people wrote, for the network of facts: `corpora/facts/*.txt`; its README.md has the format.

`## kind` opens a section; a line is `AT M T | text`: the axis and the tone (+ 0 -), the modality (d w m n r), the tense
(f e o), and a text in which `{role± Name}` marks a party and what the event means for it.
"""

import hashlib
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from htfi.domain.errors import InvalidInput
from htfi.narrative.facts.record import EventGroup, EventKind, Modality, PartyRole, Tense

SIDES = "+0-"
_MODALITIES = dict(zip("dwmnr", Modality, strict=True))
_TENSES = dict(zip("feo", Tense, strict=True))
_ROLES = "|".join(role.value for role in PartyRole)
_MARK = re.compile(rf"\{{({_ROLES})([+0-]) ([^{{}}]+)\}}")
_LINE = re.compile(r"([+0-])([+0-]) ([dwmnr]) ([feo]) \| (.+)")
_HELD_BACK = 12  # one line in so many is held back, to calibrate and to judge
_MAX_NAME_CHARS = 28  # of a name that may stand for another
_COMPANY_ROLES = frozenset(PartyRole) - {
    PartyRole.RATER, PartyRole.REGULATOR, PartyRole.SPEAKER, PartyRole.BYSTANDER,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PartySpan:
    """A party in a text: characters `start` to before `end`, its role, and the side of what happens for it."""

    start: int
    end: int
    role: PartyRole
    side: str


@dataclass(frozen=True, slots=True)
class FactLine:
    """One labelled line. `marked` is its text with marks; `axis` and `tone` are of `SIDES`."""

    kind: EventKind
    axis: str
    tone: str
    modality: Modality
    tense: Tense
    marked: str

    @property
    def text(self) -> str:
        return _MARK.sub(lambda mark: mark[3], self.marked)

    @property
    def is_held_back(self) -> bool:
        """Whether it is kept from training: decided by its text, so that it stays so in larger corpora."""
        return hashlib.sha256(self.text.encode()).digest()[0] % _HELD_BACK == 0


def read_lines(folder: Path) -> list[FactLine]:
    """The lines of all files of a folder, each text once. Raises: InvalidInput, naming the line that is no line."""
    files = sorted(folder.glob("*.txt"))
    if not files:
        raise InvalidInput(f"{folder}: no corpora of facts; name the folder 'corpora/facts' with --corpora")
    found: dict[str, FactLine] = {}
    for file in files:
        kind: EventKind | None = None
        for number, raw in enumerate(file.read_text("utf-8").splitlines(), 1):
            if not raw.strip() or raw.startswith("# "):
                continue
            where = f"{file}, line {number}"
            if raw.startswith("## "):
                kind = _kind_of(raw[3:].strip(), where)
                continue
            line = _parsed(raw, kind, where)
            found.setdefault(line.text.casefold(), line)
    return list(found.values())


class NamePool:
    """Names of companies and of raters in the lines, to stand for one another: roles must not hang on names."""

    def __init__(self, lines: Sequence[FactLine]) -> None:
        firms: set[str] = set()
        raters: set[str] = set()
        for line in lines:
            if line.kind.group is not EventGroup.COMPANY:
                continue
            for mark in _MARK.finditer(line.marked):
                if mark[3][:1].isupper() and len(mark[3]) < _MAX_NAME_CHARS:
                    role = PartyRole(mark[1])
                    if role in _COMPANY_ROLES:
                        firms.add(mark[3])
                    elif role is PartyRole.RATER:
                        raters.add(mark[3])
        self._firms, self._raters = sorted(firms), sorted(raters)

    def variant(self, line: FactLine, rng: random.Random, share: float) -> tuple[str, list[PartySpan]]:
        """The text and its parties, each name with probability `share` replaced by another of its sort."""
        instead: dict[str, str] = {}

        def other_name(name: str, role: PartyRole) -> str:
            pool = (
                self._raters if role is PartyRole.RATER else self._firms if is_firm(line, name, role) else []
            )
            if pool and name not in instead:
                instead[name] = rng.choice(pool) if rng.random() < share else name
            return instead.get(name, name)

        return with_names(line, other_name)


def is_firm(line: FactLine, name: str, role: PartyRole) -> bool:
    """Whether a party of a line is a company whose name may stand for another's."""
    return line.kind.group is EventGroup.COMPANY and role in _COMPANY_ROLES and name[:1].isupper()


def firm_names(line: FactLine) -> set[str]:
    """The companies that a line marks, by name."""
    return {mark[3] for mark in _MARK.finditer(line.marked) if is_firm(line, mark[3], PartyRole(mark[1]))}


def with_names(line: FactLine, name_of: Callable[[str, PartyRole], str]) -> tuple[str, list[PartySpan]]:
    """The text and its parties, each called what `name_of` says."""
    text, after = "", 0
    spans: list[PartySpan] = []
    for mark in _MARK.finditer(line.marked):
        text += line.marked[after : mark.start()]
        role = PartyRole(mark[1])
        name = name_of(mark[3], role)
        spans.append(PartySpan(len(text), len(text) + len(name), role, mark[2]))
        text += name
        after = mark.end()
    return text + line.marked[after:], spans


def _kind_of(name: str, where: str) -> EventKind:
    try:
        return EventKind(name)
    except ValueError as error:
        raise InvalidInput(
            f"{where}: {name!r} is no kind of event; see htfi.narrative.facts.record"
        ) from error


def _parsed(raw: str, kind: EventKind | None, where: str) -> FactLine:
    match = _LINE.fullmatch(raw)
    if match is None or kind is None:
        raise InvalidInput(f"{where}: a line is 'AT M T | text' below '## kind': {raw[:60]!r}")
    plain = _MARK.sub("", match[5])
    if "{" in plain or "}" in plain:
        raise InvalidInput(f"{where}: a mark is '{{role± Name}}': {raw[:80]!r}")
    return FactLine(kind, match[1], match[2], _MODALITIES[match[3]], _TENSES[match[4]], match[5])
