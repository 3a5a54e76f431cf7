"""Words of a text as hashed cues: one or two words, numbers as their kind. Heads weigh them beside the embedding."""

import itertools
import re
from zlib import crc32

MOST_WORDS = 96

_WORD = re.compile(
    r"https?://\S+|\$[a-z][a-z.]{0,6}\b|@\w+|[+-]?\d[\d,.]*\s?(?:%|percent\b|per cent\b|pct\b|bps?\b)|[+-]?\d[\d,.]*"
    r"|[a-z]+(?:n't|n’t)\b|[a-z]+|[?!]|[\U0001f300-\U0001faff\u2190-\u27bf]"
)


def words(text: str) -> list[str]:
    """Lower-case words; links, cash tags, names of users and numbers become their kind."""
    found: list[str] = []
    for match in _WORD.finditer(text.lower()):
        word = match[0]
        first = word[0]
        if first.isdigit() or (first in "+-" and len(word) > 1):
            sign = first if first in "+-" else ""
            share = word[-1] in "%tps"
            found.append(sign + ("<pct>" if share else "<num>"))
        elif word.startswith("http"):
            found.append("<link>")
        elif first == "$":
            found.append("<tag>")
        elif first == "@":
            found.append("<user>")
        else:
            found.append(word.replace("’", "'"))
        if len(found) == MOST_WORDS:
            break
    return found


def cue_ids(text: str) -> list[int]:
    """CRC-32 of the text's words and of its neighbours of two, each once, in rising order."""
    heard = words(text)
    grams = [*heard, *(f"{one} {two}" for one, two in itertools.pairwise(heard))]
    return sorted({crc32(gram.encode()) for gram in grams})
