"""Undoes what was done to a text to deceive a reader: the sanitiser calls it on each headline and body."""

import msgspec

from htfi.domain.news import Finding
from htfi.narrative.sanitising.unicode import cut, one_line


class Undone(msgspec.Struct, frozen=True):
    """`text` as a person would see and mean it, one line; a finding for each trick that was undone.

    `hidden` are messages that a person would not have seen (comments, tag characters, decoded runs): only to be
    examined, never shown.
    """

    text: str
    findings: tuple[Finding, ...] = ()
    hidden: tuple[str, ...] = ()


def undo(text: str, max_chars: int) -> Undone:
    """Strengths of findings: from 0.8 a deceit beyond doubt, from 0.5 suspicious, below that only noted."""
    raw = text[: 4 * max_chars + 64]  # the cut before the work bounds it
    line = one_line(raw)
    findings: list[Finding] = []
    if any("\u200b" <= char <= "\u200f" or "\u202a" <= char <= "\u202e" for char in raw):
        findings.append(Finding("unseen", 0.7, "characters that nobody sees stood in the text"))
    return Undone(cut(line, max_chars), tuple(findings))
