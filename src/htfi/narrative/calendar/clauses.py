"""A headline taken apart into clauses; refused where it reports nothing that has happened. Telling uses it."""

import re
from functools import lru_cache

from htfi.narrative.calendar.figures import plain

MAX_CHARS = 400
# What a wire puts before the report itself.
_TAGS = re.compile(
    r"^\W*(?:(?:(?:update|wrapup|wrap|refile|rpt|brief|snap|flash|breaking(?: news)?|just in|news alert|alert|urgent|"
    r"text|table|instant view|us|u\.s\.|eco|econ|economy|news|exclusive|live|official)"
    r"(?: ?\d{1,2})?(?:st|nd|rd|th)?(?: ?[-:|>]+|(?<=\d) ) ?)|[*#>!]+ ?)+"
)
# Genres that comment, foresee or look back.
_GENRES = re.compile(
    r"^\W*(?:\w+ ){0,2}(?:analysis|preview|poll|factbox|column|comment|commentary|interview|markets?|forex|stocks|"
    r"treasuries|(?<!instant )views?|scenarios?|timeline|q&a|q\+a|outlook|podcast|video|graphic|opinion|"
    r"snap analysis|breakingviews|"
    r"correct(?:ed|ion)|advisory|diary|calendar|week ahead|morning bid|newsmaker|snapshot|history|chronology|"
    r"explainer|"
    r"highlights?|quotes?|reaction|fact box|insight|special report|feature|essay|book review|repeat|recap|refile|"
    r"withdrawn|kill|satire|fiction|test)(?: ?\d+)?(?: ?[-:|]|$)"
)
# Said by others, foreseen, hoped, conditional, or past.
_HEARSAY = re.compile(
    r"\?|\b(?:if|unless|whether|rumou?rs?|reportedly|sources?|source says|analysts? (?:say|see|expect|predict)|"
    r"economists? (?:say|see|expect|predict)|traders?|futures|bets?|betting|odds|poll|survey(?:ed)?|minutes|"
    r"transcripts?|"
    r"would have|should have|could have|might have|had (?:been|expected)|hypothetical|imagine|suppose|mock|draft|"
    r"a year ago|years ago|months? ago|weeks? ago|days? ago|last (?:week|month|year|quarter|meeting|time|autumn|"
    r"summer|"
    r"spring|winter|fall|january|february|march|april|may|june|july|august|september|october|november|december)|"
    r"yesterday|tomorrow|next (?:week|month|year|meeting|time)|ahead of|"
    r"according to|forecasters?|denies|denied|not true|false report|fake|hoax|parody|april fool)\b"
)
_SAYS = re.compile(r"[,;:-] ?(?:[\w.&'-]+ ){1,4}(?:says?|said|predicts?|predicted|forecasts?|expects?|expected|thinks?|"
                   r"argues?|reckons?|sees?|warns?|hints?|suggests?|projects?|bets?)(?: (?:it|that|"
                   r"so))?\W*$")  # fmt: skip
_COMPARES = re.compile(
    r"\b(?:as|than|above|below|over|under|beat\w*|top\w*|miss\w*|match\w*|meet\w*|met|exceed\w*|vs|of|in line|"
    r"raises?|lifts?|cuts?|"
    r"lowers?|boosts?|trims?|ups|hikes?|slashes|keeps|maintains|reaffirms|affirms|backs|est|\d\S*)\b"
)
_SPLIT = re.compile(
    r"; ?|: |, | - |(?<=\w)-- ?| \(|\) ?|(?<=\w\w)\. (?=[a-z])|"
    r"\b(?=(?:but|while|as|after|amid|despite|although|though|because|since|citing|saying|with|and(?! [\d.])) )"
)


@lru_cache(maxsize=512)
def report_of(headline: str) -> str:
    """The headline without tags, in `plain` letters; empty where it does not report what has happened."""
    text = " ".join(plain(headline[:MAX_CHARS]).split())
    if _GENRES.match(text):
        return ""
    text = _TAGS.sub("", text)
    says = _SAYS.search(text)
    if says is not None and not _COMPARES.search(says[0]):
        return ""
    return "" if _GENRES.match(text) or _HEARSAY.search(text) else text


def clauses(report: str) -> list[str]:
    """Its clauses, in order; conjunctions stand at the head of theirs."""
    return [part.strip() for part in _SPLIT.split(report) if part and part.strip()]


def first_sentence(body: str) -> str:
    """The sentence that a body begins with, without its dateline ('WASHINGTON (Reuters) - ')."""
    text = re.sub(r"^[^a-z]{0,60}?\((?:[A-Z][\w .]{1,30})\)\s*[-–—]+\s*", "", body[:MAX_CHARS])
    return re.split(r"(?<=[a-z%\d)])\.\s+(?=[A-Z\"“])", text, maxsplit=1)[0]


@lru_cache(maxsize=512)
def alternatives(names: tuple[str, ...]) -> str:
    """A pattern for any of the names, the longest first, in `plain` letters."""
    ordered = sorted({plain(name) for name in names}, key=lambda name: (-len(name), name))
    return "(?:" + "|".join(re.escape(name) for name in ordered) + ")"
