"""Finds quotations in a text with who said them, in time linear in its length."""

from dataclasses import dataclass

from htfi.narrative.patterns import Patterns

MAX_QUOTATIONS = 200
_MAX_GAP = 160  # characters around a quotation that may name its speaker
_MAX_GAP_WITHIN = 60
_DATA = Patterns("htfi.narrative.facts.passages", "patterns.toml", "quotations")
_QUOTE = _DATA.compiled("quote")
_AFTER, _AFTER_SUBJECT = _DATA.compiled("after"), _DATA.compiled("after_subject")
_BEFORE, _BEFORE_COLON = _DATA.compiled("before"), _DATA.compiled("before_colon")
_PRONOUN = _DATA.compiled("pronoun")


@dataclass(frozen=True, slots=True)
class Quotation:
    """Quoted words, their place with their marks (`start` to before `end`), and their speaker, '' if unnamed."""

    start: int
    end: int
    text: str
    speaker: str


def find_quotations(body: str) -> list[Quotation]:
    """The quotations of a body in order. 'He said' and a quotation that goes on are of the speaker before."""
    found: list[Quotation] = []
    last = ""
    for match in _QUOTE.finditer(body):
        before = body[max(0, match.start() - _MAX_GAP) : match.start()]
        after = body[match.end() : match.end() + _MAX_GAP].partition("\n\n")[0]
        text = " ".join(next(group for group in match.groups() if group is not None).split())
        is_closed = text.endswith((".", "。")) and not after.lstrip().startswith(
            ","
        )  # what follows is a new sentence
        speaker = _speaker(before, "" if is_closed else after)
        if not speaker and found and (_PRONOUN.match(after) or _goes_on(body, found[-1].end, match.start())):
            speaker = last
        last = speaker or last
        found.append(Quotation(match.start(), match.end(), text, speaker))
        if len(found) == MAX_QUOTATIONS:
            break
    return found


def _goes_on(body: str, end: int, start: int) -> bool:
    """Whether a quotation follows the last one in its paragraph, with little between."""
    return start - end <= _MAX_GAP_WITHIN and "\n\n" not in body[end:start]


def _speaker(before: str, after: str) -> str:
    for pattern, text in (
        (_AFTER, after),
        (_AFTER_SUBJECT, after),
        (_BEFORE, before),
        (_BEFORE_COLON, before),
    ):
        match = pattern.search(text) if text is before else pattern.match(text)
        if match is not None and match["name"] not in _NO_NAMES:
            return match["name"].rstrip(".,")
    return ""


_NO_NAMES = frozenset({"He", "She", "They", "It", "The", "But", "And", "In", "A"})
