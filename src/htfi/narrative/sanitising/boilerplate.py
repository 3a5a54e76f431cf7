# ruff: noqa: E501 -- a line is a family of phrases
"""Cuts what stands around the news and tells nothing: agency tails, notices, pleas to click; `undo` calls it.

Only whole sentences or whole brackets at the end of a text, and datelines of a plea at its start. No finding: such
lines are honest.
"""

import re

_BRACKETED = re.compile(
    r"\s*\((?:Additional |Writing |Reporting |Editing |Compiled |Our Standards|Reuters Staff|With additional|"
    r"This story (?:has not been edited|was)|c\) )[^()]{0,400}\)\s*$",
    re.I,
)
_SENTENCES = re.compile(
    r"(?:(?<=[.!?…)\"”])|(?<=\s\|)|(?<=^))\s*(?:"
    r"(?:please )?(?:click|tap) (?:here|the link|below|on the (?:following )?link)\b[^.!?]{0,160}"
    r"|(?:to )?(?:read|see|view|get) (?:more|the full (?:story|article|report)|full (?:story|article|report))\b[^.!?]{0,120}"
    r"|(?:sign up|subscribe|register) (?:now |here |today )?(?:for|to) (?:our|the|your)\b[^.!?]{0,120}(?:newsletter|alerts?|updates?|briefing|feed)[^.!?]{0,80}"
    r"|follow us on [^.!?]{0,120}"
    r"|for more (?:information|news|details),? (?:please )?(?:visit|see|go to|click|contact)\b[^!?]{0,160}"
    r"|our standards: [^.!?]{0,120}"
    r"|(?:©|\(c\)|copyright)\s[^!?]{0,200}?(?:all rights reserved)?"
    r"|all rights reserved"
    r"|this (?:article|story|press release|news release|content) (?:is|was|has been|may|contains|does not)\b[^.!?]{0,240}(?:advice|statements|edited|feed|automat\w*|syndicat\w*)[^.!?]{0,80}"
    r"|(?:certain )?statements (?:contained )?in this (?:release|press release|document) [^.!?]{0,240}forward-looking[^.!?]{0,120}"
    r"|past performance is (?:not|no)\b[^.!?]{0,160}"
    r")[.!?]?\s*$",
    re.I,
)
_HINTS = (
    "click", "tap ", "subscrib", "sign up", "register", "reserved", "©", "(c)", "copyright", "read more", "full story",
    "full article", "full report", "see more", "view more", "follow us", "for more", "our standards", "forward-looking",
    "past performance", "this article", "this story", "this press", "this news", "this content",
)  # fmt: skip
_MAX_TAILS = 6
_WINDOW = 700
_MIN_LEFT = 12


def trim(text: str) -> str:
    """The text without such tails; unchanged where little else would be left."""
    for _ in range(_MAX_TAILS):
        end = text[-_WINDOW:].lower()
        if not end.endswith(")") and not any(hint in end for hint in _HINTS):
            return text
        head, tail = text[:-_WINDOW], text[-_WINDOW:]
        cut = _SENTENCES.sub("", _BRACKETED.sub("", tail))
        if cut == tail:
            return text
        left = (head + cut).rstrip(" |")
        if len(left) < _MIN_LEFT:
            return text
        text = left
    return text
