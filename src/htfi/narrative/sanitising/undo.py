"""Undoes what was done to a text to deceive a reader: the sanitiser calls it on each headline and body.

Steps run until none changes the text any more: markup, entities and broken encodings, what nobody sees, look-alikes,
split words, tails. What a person would not have seen is handed on, to be examined and never shown.
"""

import html
import re

import msgspec

from htfi.domain.news import Finding
from htfi.narrative.sanitising.boilerplate import trim
from htfi.narrative.sanitising.encodings import decode
from htfi.narrative.sanitising.homoglyphs import unmask
from htfi.narrative.sanitising.markup import unmark
from htfi.narrative.sanitising.splitting import join
from htfi.narrative.sanitising.unicode import cut, one_line
from htfi.narrative.sanitising.unseen import reveal

_MAX_ROUNDS = 4
_MAX_HIDDEN = 32
_MAX_HIDDEN_CHARS = 4_000
_LARGE_CHARS = 1_000_000
_ENTITY = re.compile(r"&(?:amp;)*(#[0-9]{1,7};?|#[xX][0-9a-fA-F]{1,6};?|[A-Za-z][A-Za-z0-9]{1,31};)")
_NESTING = re.compile(r"[<>&\[\]{}\\\x1b]")
_MOJIBAKE = re.compile("[ÂÃâÅÄÐÑðÎÏ][\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]{1,3}")
_OUTLINED = re.compile("[\U0001ccd6-\U0001ccef]")  # Unicode 16, unknown to older Pythons
_OUTLINED_DIGITS = re.compile("[\U0001ccf0-\U0001ccf9]")
_LOST_QUOTE = re.compile(
    "â€(?:\x9d)?(?![\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ])"
)  # its third byte has no letter
_CONTROL_LETTERS = re.compile("[\x80-\x9f]")
_CP1252 = {char: code for code in range(0x80, 0xA0) if (char := bytes([code]).decode("cp1252", "ignore"))}


class Undone(msgspec.Struct, frozen=True):
    """`text` as a person would see and mean it, one line; a finding for each trick that was undone.

    `hidden` are messages that a person would not have seen (comments, tag characters, decoded runs): only to be
    examined, never shown.
    """

    text: str
    findings: tuple[Finding, ...] = ()
    hidden: tuple[str, ...] = ()


def undo(text: str, max_chars: int) -> Undone:
    """Strengths of findings: from 0.75 a deceit beyond doubt, from 0.5 suspicious, below that only noted.

    Guarantees: no character that nobody sees is left; `undo` of its own text changes nothing; at most `max_chars`.
    The work is linear in the part that is looked at, a few times `max_chars`.
    """
    findings: list[Finding] = []
    hidden: list[str] = []
    if len(text) > _LARGE_CHARS:
        findings.append(Finding("size", 0.5, f"the text has {len(text):,} characters"))
    text = text[: 4 * max_chars + 64]  # the cut before the work bounds it
    for number in range(_MAX_ROUNDS + 1):
        before = text
        text = _round(text, max_chars, findings, hidden)
        if text == before or text == " ".join(before.split()):
            break
        if number == _MAX_ROUNDS - 1 and _round(text, max_chars, [], []) != text:
            text = _NESTING.sub(" ", text)  # markup within markup within markup
            findings.append(Finding("nesting", 0.5, "tricks were nested in one another"))
    coded, messages = decode(text)
    findings += coded
    hidden += messages
    return Undone(
        text, _once(findings), tuple(message[:_MAX_HIDDEN_CHARS] for message in hidden[:_MAX_HIDDEN])
    )


def _round(text: str, max_chars: int, findings: list[Finding], hidden: list[str]) -> str:
    if "<" in text or "[" in text or "\\" in text or "\x1b" in text or "\x08" in text:
        text, found, unseen = unmark(text)
        findings += found
        hidden += unseen
    if "&" in text:
        text = _ENTITY.sub(_character, text)
    if not text.isascii() or not text.isprintable():
        text = _mended(text)
        text, found, unseen = reveal(text)
        findings += found
        hidden += unseen
        text, found = unmask(one_line(text))
        findings += found
    text, found = join(" ".join(text.split()))
    findings += found
    return cut(trim(" ".join(text.split())), max_chars)


def _character(found: re.Match[str]) -> str:
    """The character that an entity names, however often its ampersand was escaped."""
    entity = f"&{found[1]}"
    return html.unescape(entity)


def _mended(text: str) -> str:
    """UTF-8 that was read as Windows-1252 put right, and control characters that were its quotes and dashes."""
    text = _OUTLINED.sub(lambda found: chr(ord(found[0]) - 0x1CCD6 + 0x1D400), text)
    text = _OUTLINED_DIGITS.sub(lambda found: chr(ord(found[0]) - 0x1CCF0 + 0x1D7CE), text)
    text = _MOJIBAKE.sub(_reread, text)
    text = _LOST_QUOTE.sub("”", text).replace("ï¿½", "\ufffd")
    return _CONTROL_LETTERS.sub(_control_letter, text)


def _control_letter(found: re.Match[str]) -> str:
    return bytes([ord(found[0])]).decode("cp1252", "ignore")


def _reread(found: re.Match[str]) -> str:
    raw = bytes(_CP1252.get(char, ord(char)) for char in found[0] if char in _CP1252 or ord(char) < 256)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return found[0]


def _once(findings: list[Finding]) -> tuple[Finding, ...]:
    """The strongest of each rule, in the order in which rules spoke."""
    strongest: dict[str, Finding] = {}
    for finding in findings:
        known = strongest.get(finding.rule)
        if known is None or finding.strength > known.strength:
            strongest[finding.rule] = finding
    return tuple(strongest.values())
