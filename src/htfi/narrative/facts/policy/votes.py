"""Reads how a committee voted: the count, and who dissented and what they preferred."""

import re
from dataclasses import dataclass
from enum import StrEnum

from htfi.narrative.calendar.headlines import parse_number, plain_letters
from htfi.narrative.facts.sentences import split_sentences
from htfi.narrative.patterns import Patterns

MAX_DISSENTS = 16


class Preference(StrEnum):
    """What a dissenter preferred."""

    CUT = "cut"
    HOLD = "hold"
    RAISE = "raise"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Dissent:
    """A member who voted against, '' where only a number of members is stated, and the preference."""

    name: str
    preference: Preference


@dataclass(frozen=True, slots=True)
class Vote:
    """How many voted for and against, None where not stated, and the dissents."""

    num_for: int | None = None
    num_against: int | None = None
    dissents: tuple[Dissent, ...] = ()


NO_VOTE = Vote()
_DATA = Patterns("htfi.narrative.facts.policy", "patterns.toml", "votes")
_FIGURES = _DATA.compiled("figures")
_UNANIMOUS = _DATA.compiled("unanimous")
_FOR_LIST = _DATA.compiled("for_list", re.IGNORECASE)
_AGAINST_LIST = _DATA.compiled("against_list", re.IGNORECASE)
_MINORITY = _DATA.compiled("minority")
_PREFERENCE = _DATA.compiled("preference")
_CUTS, _RAISES, _HOLDS = (
    _DATA.compiled("prefers_cut"),
    _DATA.compiled("prefers_raise"),
    _DATA.compiled("prefers_hold"),
)
_NAME = re.compile(
    r"(?:(?:President|Governor|Chairman|Chair|Vice Chair(?:man)?|Mr|Ms|Mrs|Dr|Messrs|Mses)\.? )*"
    r"(?P<name>[A-Z][\w'’-]+(?: [A-Z]\.)*(?: (?:[A-Z]\.|[A-Z][\w'’-]+|de|van|von|der|la)){1,4}(?:,? Jr\.)?)"
)
_ROLE = re.compile(r",? (?:Vice )?Chair(?:man|woman)?\b")
_LIST_END = re.compile(
    r"\.(?=\s+[A-Z][a-z]+ing\b|\s*$|\s+(?:The|In|President|Governor|Mr|Ms|Absent|Voting|Statement|Implementation|For)\b)|\n\s*\n"
)
_MAX_LIST_CHARS = 1_500
_WORDS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12,
}  # fmt: skip


def find_vote(text: str) -> Vote:
    """The vote that a headline or a statement reports; empty where it reports none."""
    plain = plain_letters(" ".join(text.split()))
    in_favour = _names(text, _FOR_LIST)
    dissents = _dissents(text)
    counted = _counts(plain)
    minority = _minority(plain)
    if counted is None and in_favour:
        counted = len(in_favour), len(dissents)
    if counted is None and _UNANIMOUS.search(plain) and not dissents and not minority:
        return Vote(None, 0)
    if not dissents:
        dissents = minority
    num_for, num_against = counted or (None, len(dissents) or None)
    return Vote(num_for, num_against, tuple(dissents[:MAX_DISSENTS]))


def _counts(plain: str) -> tuple[int, int] | None:
    for match in _FIGURES.finditer(plain):
        given = (
            match["for"] or match["paren_for"] or match["head_for"],
            match["against"] or match["paren_against"] or match["head_against"],
        )
        num_for, num_against = (_number(one) for one in given)
        if (
            num_for is not None
            and num_against is not None
            and num_for >= num_against
            and 1 < num_for + num_against <= 30
        ):
            return num_for, num_against
    return None


def _number(text: str) -> int | None:
    if text in _WORDS:
        return _WORDS[text]
    value = parse_number(text)
    return None if value is None else int(value)


def _names(text: str, begins: re.Pattern[str]) -> list[str]:
    """The names of the first list of voters."""
    match = begins.search(text)
    if match is None:
        return []
    return [one["name"] for one in _NAME.finditer(_ROLE.sub("", _list_after(text, match.end())))]


def _list_after(text: str, start: int) -> str:
    found = text[start : start + _MAX_LIST_CHARS]
    end = _LIST_END.search(found)
    return " ".join((found[: end.start()] if end else found).split())


def _dissents(text: str) -> list[Dissent]:
    """Those who voted against, each with the preference that is stated behind the names."""
    found: list[Dissent] = []
    for match in _AGAINST_LIST.finditer(text):
        listed = _list_after(text, match.end())
        rest = text[match.end() : match.end() + _MAX_LIST_CHARS]
        for part in re.split(r"; (?:and )?", _ROLE.sub("", listed)):
            who, _, why = part.partition(", who")
            names = [one["name"] for one in _NAME.finditer(who)]
            preference = _preference(why) if why else _preference_behind(rest)
            found += [Dissent(name, preference) for name in names if all(name != one.name for one in found)]
    return found


def _preference_behind(rest: str) -> Preference:
    """'Voting against was Robert T. Parry. President Parry preferred a 50 basis point reduction.'"""
    for sentence in split_sentences(rest)[:3]:
        if _PREFERENCE.search(sentence.text.lower()):
            return _preference(sentence.text)
    return Preference.OTHER


def _preference(why: str) -> Preference:
    """What a clause on a dissent prefers, by the first of the words for it."""
    plain = plain_letters(why)
    preferred = _PREFERENCE.search(plain)
    if preferred is None:
        return Preference.OTHER
    plain = plain[preferred.start() :]
    places = {
        kind: match.start()
        for kind, pattern in ((Preference.CUT, _CUTS), (Preference.RAISE, _RAISES), (Preference.HOLD, _HOLDS))
        if (match := pattern.search(plain))
    }
    return min(places, key=lambda kind: places[kind]) if places else Preference.OTHER


def _minority(plain: str) -> list[Dissent]:
    """'Two members preferred to maintain Bank Rate at 4.25%': dissents without names."""
    found: list[Dissent] = []
    for match in _MINORITY.finditer(plain):
        preference = _preference("preferred " + plain[match.end() : match.end() + 60])
        if preference is not Preference.OTHER:
            num = _WORDS.get(match[0].split()[0], 0)
            found += [Dissent("", preference)] * num
    return found
