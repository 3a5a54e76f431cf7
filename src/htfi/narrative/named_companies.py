"""Finds the companies that a text names, each by all of its names and tickers there."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from htfi.narrative.encoding.linking import EntityLinker, EntityMention, names_company
from htfi.narrative.facts.assets import AssetKind, asset_of
from htfi.narrative.facts.naming import find_name

_LEGAL_FORM = re.compile(
    r",? (?:PLC|Plc|plc|INC|Inc|CORP|Corp(?:oration)?|CO|Co|LTD|Ltd|Limited|AG|SA|NV|SE|LLC)\b\.?"
)


class NamedCompany(NamedTuple):
    """A company in a text, by all the names and tickers that stand there for it, the longest first."""

    names: tuple[str, ...]
    is_own: bool  # whether it is the one that is asked about


def companies_in(text: str, asked: tuple[str, str], linker: EntityLinker) -> list[NamedCompany]:
    """The companies that a text names: the one that is asked about first, then others in the order of the text.

    What overlaps the name of the one that is asked about, and what else stands for the same symbol, is its name too.
    """
    mentions = _company_mentions(text, linker)
    own = _own_span(text, asked, mentions)
    own_symbols = {asked[0]} if own else set[str]()
    own_symbols |= {one.symbol for one in mentions if own and one.start < own[1] and one.end > own[0]}
    spans: dict[str, list[tuple[int, int]]] = {asked[0]: [own]} if own else {}
    for one in mentions:
        symbol = asked[0] if one.symbol in own_symbols else one.symbol
        if own or symbol != asked[0]:
            spans.setdefault(symbol, []).append((one.start, one.end))
    found: list[NamedCompany] = []
    taken: set[str] = set()
    for symbol, of_symbol in spans.items():
        names = dict.fromkeys(text[start:end] for start, end in of_symbol)
        names = [name for name in names if name not in taken]
        taken |= set(names)
        if names:
            found.append(
                NamedCompany(tuple(sorted(names, key=len, reverse=True)), bool(own) and symbol == asked[0])
            )
    return found


def _company_mentions(text: str, linker: EntityLinker) -> list[EntityMention]:
    """Where a text names companies; neighbouring names of one company are one."""
    found: list[EntityMention] = []
    for one in linker.mentions(text):
        if not names_company(one.symbol, text[one.start : one.end]):
            continue
        last = found[-1] if found else None
        if last is not None and last.symbol == one.symbol and text[last.end : one.start] in (" ", "-"):
            found[-1] = EntityMention(last.start, one.end, one.symbol)
        else:
            found.append(one)
    return found


def end_of_legal_form(text: str, end: int) -> int:
    """Where a name that ends at `end` ends with the legal form that may stand behind it."""
    form = _LEGAL_FORM.match(text, end)
    return form.end() if form else end


def _own_span(text: str, asked: tuple[str, str], mentions: Sequence[EntityMention]) -> tuple[int, int] | None:
    """Where the text names the company that is asked about; None where it does not."""
    symbol, name = asked
    if not (symbol or name) or asset_of(symbol or name, name).kind is not AssetKind.EQUITY:
        return None
    linked = ((one.start, one.end) for one in mentions if symbol and one.symbol == symbol)
    found = find_name(text, symbol, name) or next(linked, None)
    return found if found and text[found[0]].isupper() else None
