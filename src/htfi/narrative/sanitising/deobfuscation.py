"""Removes what was done to a text to deceive a reader, and the boilerplate around the news.

Steps run until none changes the text any more: markup, entities and broken encodings, invisible characters,
look-alikes, split words, boilerplate. What a person would not have seen is returned apart, to be examined and never
shown.
"""

import html
import re
from functools import cache
from typing import Any

import msgspec

from htfi.domain.news import ScreeningFinding
from htfi.narrative.patterns import Patterns
from htfi.narrative.sanitising import compiled
from htfi.narrative.sanitising.characters import remove_invisible
from htfi.narrative.sanitising.encodings import INSTRUCTION_KINDS, decode_messages
from htfi.narrative.sanitising.english import common_words
from htfi.narrative.sanitising.homoglyphs import replace_homoglyphs
from htfi.narrative.sanitising.markup import strip_markup
from htfi.narrative.sanitising.phrase_lexicon import words_of_kinds
from htfi.narrative.sanitising.splitting import GRAMMAR_WORDS, join_split_words
from htfi.narrative.text import cut, one_line

_DATA = Patterns("htfi.narrative.sanitising", "patterns.toml", "deobfuscation")
_BRACKETED_TAIL = _DATA.compiled("bracketed_tail", re.I)
_TAIL_SENTENCES = _DATA.compiled("tail_sentences", re.I)
_TAIL_HINTS = (
    "click", "tap ", "subscrib", "sign up", "register", "reserved", "©", "(c)", "copyright", "read more", "full story",
    "full article", "full report", "see more", "view more", "follow us", "for more", "our standards", "forward-looking",
    "past performance", "this article", "this story", "this press", "this news", "this content",
)  # fmt: skip
_MAX_TAILS = 6
_TAIL_CHARS = 700
_MIN_LEFT = 12


def trim_boilerplate(text: str) -> str:
    """The text without agency tails, notices and pleas to click; unchanged if little else would be left.

    Only whole sentences or whole brackets at the end of a text are cut. There is no finding: such lines are honest.
    """
    for _ in range(_MAX_TAILS):
        end = text[-_TAIL_CHARS:].lower()
        if not end.endswith(")") and not any(hint in end for hint in _TAIL_HINTS):
            return text
        head, tail = text[:-_TAIL_CHARS], text[-_TAIL_CHARS:]
        cut = _TAIL_SENTENCES.sub("", _BRACKETED_TAIL.sub("", tail))
        if cut == tail:
            return text
        left = (head + cut).rstrip(" |")
        if len(left) < _MIN_LEFT:
            return text
        text = left
    return text


_MAX_PASSES = 4
_MAX_HIDDEN = 32
_MAX_HIDDEN_CHARS = 4_000
_LARGE_CHARS = 1_000_000
_ENTITY = re.compile(r"&(?:amp;)*(#[0-9]{1,7};?|#[xX][0-9a-fA-F]{1,6};?|[A-Za-z][A-Za-z0-9]{1,31};)")
_NESTING = re.compile(r"[<>&\[\]{}\\\x1b]")
# UTF-8 sequences that were read as Windows-1252, side by side.
_CONTINUATION = "[\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
_MOJIBAKE = re.compile(f"(?:[Â-ß]{_CONTINUATION}|[à-ï]{_CONTINUATION}{{2}}|[ð-ô]{_CONTINUATION}{{3}})+")
_SURE_LEADS, _LIKELY_LEADS = frozenset("ÂÃâð"), frozenset("ÅÄÐÑÎÏ")
_TYPOGRAPHIC = frozenset("‘’“”•–—…")  # after a letter of a spelling they are honest: “Å”
_OUTLINED = re.compile("[\U0001ccd6-\U0001ccef]")  # Unicode 16, unknown to older Pythons
_OUTLINED_DIGITS = re.compile("[\U0001ccf0-\U0001ccf9]")
_LOST_QUOTE = _DATA.compiled("lost_quote")
_CONTROL_LETTERS = re.compile("[\x80-\x9f]")
_CP1252 = {char: code for code in range(0x80, 0xA0) if (char := bytes([code]).decode("cp1252", "ignore"))}


class Deobfuscated(msgspec.Struct, frozen=True):
    """`text` as a person would see and mean it, on one line; a finding for each disguise that was removed.

    `hidden` are messages that a person would not have seen (comments, tag characters, decoded runs): to be examined,
    never shown.
    """

    text: str
    findings: tuple[ScreeningFinding, ...] = ()
    hidden: tuple[str, ...] = ()


def deobfuscate(text: str, max_chars: int) -> Deobfuscated:
    """Strengths of findings: from 0.75 certain deceit, from 0.5 suspicious, below that recorded only.

    Guarantees: no invisible character is left; applied to its own text it changes nothing; at most `max_chars`. The
    work is linear in the part that is examined, a few times `max_chars`.
    """
    if (plain := _as_it_stands(text, max_chars)) is not None:
        return plain
    findings: list[ScreeningFinding] = []
    hidden: list[str] = []
    if len(text) > _LARGE_CHARS:
        findings.append(ScreeningFinding("size", 0.5, f"the text has {len(text):,} characters"))
    text = text[: 4 * max_chars + 64]  # the cut before the work bounds it
    for number in range(_MAX_PASSES + 1):
        before = text
        text = _one_pass(text, max_chars, findings, hidden)
        if text == before or text == " ".join(before.split()):
            break
        if number == _MAX_PASSES - 1 and _one_pass(text, max_chars, [], []) != text:
            text = _NESTING.sub(" ", text)  # deeply nested markup
            findings.append(ScreeningFinding("nesting", 0.5, "disguises were nested in one another"))
    coded, messages = decode_messages(text)
    findings += coded
    hidden += messages
    return Deobfuscated(text, _strongest_by_rule(findings), _shortened(hidden))


def _as_it_stands(text: str, max_chars: int) -> Deobfuscated | None:
    """The result for a text that no pass changes, as nearly all news; None where one may. Compiled code says which
    steps could find something; without it the passes do.
    """
    if compiled.disguise is None:
        return None
    doubts = compiled.disguise.doubts(text, max_chars, *_known_words())
    if not doubts:
        return Deobfuscated(text)
    if (
        doubts & compiled.disguise.REWRITTEN
        or (doubts & compiled.disguise.SPLIT and join_split_words(text) != (text, []))
        or (doubts & compiled.disguise.TAIL and trim_boilerplate(text) != text)
    ):
        return None
    coded = doubts & (compiled.disguise.CODES | compiled.disguise.CIPHERS)
    findings, messages = decode_messages(text) if coded else ([], [])
    return Deobfuscated(text, _strongest_by_rule(findings), _shortened(messages))


@cache
def _known_words() -> tuple[Any, Any, Any]:
    """For compiled code: common words, with those of grammar, and words of instructions, as they stand and as stems."""
    core = compiled.disguise
    core.set_tail_hints(_TAIL_HINTS)
    common = dict.fromkeys(common_words(), 1) | dict.fromkeys(common_words() & GRAMMAR_WORDS, 2)
    return core.Words(common), *map(core.Words, words_of_kinds(INSTRUCTION_KINDS))


def _shortened(hidden: list[str]) -> tuple[str, ...]:
    return tuple(message[:_MAX_HIDDEN_CHARS] for message in hidden[:_MAX_HIDDEN])


def _one_pass(text: str, max_chars: int, findings: list[ScreeningFinding], hidden: list[str]) -> str:
    if "<" in text or "[" in text or "\\" in text or "\x1b" in text or "\x08" in text:
        text, found, unseen = strip_markup(text)
        findings += found
        hidden += unseen
    if "&" in text:
        text = _ENTITY.sub(_entity_character, text)
    if not text.isascii() or not text.isprintable():
        text = _repaired_encoding(text)
        text, found, unseen = remove_invisible(text)
        findings += found
        hidden += unseen
        text, found = replace_homoglyphs(one_line(text))
        findings += found
    text, found = join_split_words(" ".join(text.split()))
    findings += found
    return cut(trim_boilerplate(" ".join(text.split())), max_chars)


def _entity_character(found: re.Match[str]) -> str:
    """The character that an entity names, however often its ampersand was escaped."""
    entity = f"&{found[1]}"
    return html.unescape(entity)


def _repaired_encoding(text: str) -> str:
    """UTF-8 that was read as Windows-1252 repaired, and control characters that stand for quotes and dashes
    replaced.
    """
    text = _OUTLINED.sub(lambda found: chr(ord(found[0]) - 0x1CCD6 + 0x1D400), text)
    text = _OUTLINED_DIGITS.sub(lambda found: chr(ord(found[0]) - 0x1CCF0 + 0x1D7CE), text)
    if _MOJIBAKE.search(text):
        is_garbled = any(_is_certain(found[0]) for found in _MOJIBAKE.finditer(text))
        text = _MOJIBAKE.sub(lambda found: _redecoded(found[0], is_garbled), text)
    text = _LOST_QUOTE.sub("”", text).replace("ï¿½", "\ufffd")
    return _CONTROL_LETTERS.sub(_control_letter, text)


def _control_letter(found: re.Match[str]) -> str:
    return bytes([ord(found[0])]).decode("cp1252", "ignore")


def _is_certain(run: str) -> bool:
    """Whether a run is of at least two sequences, which no spelling has."""
    decoded = _decoded(run)
    return len(decoded) > 1 and decoded != run


def _redecoded(run: str, is_garbled: bool) -> str:
    """A run decoded, where it cannot be honest: 'à »' and 'É»' are, except in a text that is garbled elsewhere."""
    is_likely = run[0] in _LIKELY_LEADS and run[1] not in _TYPOGRAPHIC
    if is_garbled or is_likely or run[0] in _SURE_LEADS:
        return _decoded(run)
    return run


def _decoded(run: str) -> str:
    try:
        return bytes(_CP1252.get(char, ord(char)) for char in run).decode("utf-8")
    except UnicodeDecodeError:
        return run


def _strongest_by_rule(findings: list[ScreeningFinding]) -> tuple[ScreeningFinding, ...]:
    """The strongest finding of each rule, in the order of the rules."""
    strongest: dict[str, ScreeningFinding] = {}
    for finding in findings:
        known = strongest.get(finding.rule)
        if known is None or finding.strength > known.strength:
            strongest[finding.rule] = finding
    return tuple(strongest.values())
