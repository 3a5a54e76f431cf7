"""Hides who a text is about from the network: each company's name stands as 'Company A', 'Company B'.

What a network has learnt of a name must not decide what news on it means. On labelled headlines the signs are right
more often so, too (docs/fairness.md).
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from htfi.narrative.encoding.linking import EntityMention, names_company
from htfi.narrative.facts.assets import AssetKind, asset_of
from htfi.narrative.facts.naming import find_name

_LETTERS = "ABCDEFGH"  # further companies keep their names


class MaskedName(NamedTuple):
    """A name at `start` to before `end` of a text, and where its mask stands in the masked text."""

    start: int
    end: int
    masked_start: int
    masked_end: int


class MaskedText(NamedTuple):
    """A text with masks in place of names, in the order of the text."""

    text: str
    names: tuple[MaskedName, ...] = ()

    def original(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where tokens [T, 2] of the masked text stand in the original one; one of a mask stands for the whole name."""
        if not self.names:
            return tokens
        found = [self._original(start, end) for start, end in tokens.tolist()]
        return np.array(found, np.int64).reshape(tokens.shape)

    def _original(self, start: int, end: int) -> tuple[int, int]:
        shift = 0
        for name in self.names:
            if start < name.masked_end and end > name.masked_start:
                return name.start, name.end
            if start < name.masked_start:
                break
            shift = name.end - name.masked_end
        return start + shift, end + shift


def mask_names(text: str, mentions: Sequence[EntityMention], asked: tuple[str, str]) -> MaskedText:
    """The text with the company that is asked about, by symbol and name, as 'Company A', and others that are known.

    Nothing is masked where what is asked about is no company, or is not named.
    """
    symbol, name = asked
    found = find_name(text, symbol, name)
    if found is None or not _is_firm(symbol, name, text[slice(*found)]):
        return MaskedText(text)
    spans = {(one.start(), one.end()): "" for one in _occurrences(text[slice(*found)], text)}
    spans |= {
        (one.start, one.end): "" if one.symbol == symbol else one.symbol
        for one in mentions
        if names_company(one.symbol, text[one.start : one.end]) and not _is_over(one, spans)
    }
    letters = {"": _LETTERS[0]}
    parts: list[str] = []
    names: list[MaskedName] = []
    after = length = 0
    for (start, end), who in sorted(spans.items()):
        if start < after or (who not in letters and len(letters) == len(_LETTERS)):
            continue
        mask = f"Company {letters.setdefault(who, _LETTERS[len(letters) % len(_LETTERS)])}"
        mask = mask.upper() if text.isupper() else mask
        length += start - after
        parts += [text[after:start], mask]
        names.append(MaskedName(start, end, length, length + len(mask)))
        after, length = end, length + len(mask)
    return MaskedText("".join([*parts, text[after:]]), tuple(names))


def _is_firm(symbol: str, name: str, written: str) -> bool:
    """Whether what is asked about is a company that is written as a name."""
    return written[:1].isupper() and asset_of(symbol or name, name).kind is AssetKind.EQUITY


def _occurrences(written: str, text: str) -> Sequence[re.Match[str]]:
    return list(re.finditer(rf"(?<![\w&]){re.escape(written)}(?![\w&])", text))


def _is_over(mention: EntityMention, spans: dict[tuple[int, int], str]) -> bool:
    return any(mention.start < end and mention.end > start for start, end in spans)
