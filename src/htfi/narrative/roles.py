"""The part that a company has in a headline: who buys and who is bought, who sues, who is rated. Rules on its words.

A reader judges news by whom they befall; asked about the other party it answers for the wrong one. `htfi scenario` asks
before a reader does.
"""

import re
from collections.abc import Sequence

from htfi.narrative.encoding.linking import Linker, Mention, is_company
from htfi.narrative.role_rules import OF_TWO, RELATED, RULES, Role

MAX_CHARS = 300  # of a headline; who does what to whom it has said by then
_COMPILED = tuple((role, re.compile(rule)) for role, rule in RULES)
_LEADING = re.compile(rf"^\W*(?:¤(?:,\s*|\s+and\s+|\s*&\s*|['’]?s?\s+{RELATED}\s+))*§")
_OWN_CLAUSE = re.compile(
    r"(?:^|[;:–—]|\b(?:after|as|while|but|when|because|before|since))\s*§['’]?s?\s+[a-z]"
)


def roles(symbols: Sequence[str], headline: str, linker: Linker) -> dict[str, Role]:
    """The role of each symbol in a headline; one that stands in it as it is spelled is named by that.

    What is no company (an index, a currency, a commodity) has none: the news are about it as they are. So they are
    about any symbol where no company is named.
    """
    headline = headline[:MAX_CHARS]
    mentions = [one for one in linker.mentions(headline, symbols) if is_company(one.symbol)]
    if not headline.isupper():
        known = {_root(one.symbol) for one in mentions}
        for symbol in symbols:
            if _root(symbol) not in known and symbol.isupper() and len(symbol) > 1:
                found = re.finditer(rf"(?<![\w.]){re.escape(symbol)}(?!\w)", headline)
                mentions += [Mention(one.start(), one.end(), symbol) for one in found]
    mentions.sort(key=lambda one: one.start)
    return {symbol: _role_of(symbol, headline, mentions, linker) for symbol in symbols}


def _role_of(symbol: str, headline: str, mentions: Sequence[Mention], linker: Linker) -> Role:
    """`mentions` are of companies."""
    if not mentions or not is_company(symbol) or _stands_for_no_company(symbol, linker):
        return Role.SUBJECT
    wanted = _root(symbol)
    if not any(_root(one.symbol) == wanted for one in mentions):
        return Role.NOT_NAMED if linker.knows(symbol) else Role.UNCLEAR
    masked = _mask(headline, wanted, mentions)
    alone = all(_root(one.symbol) == wanted for one in mentions)
    for role, rule in _COMPILED:
        if rule.search(masked):
            return Role.SUBJECT if alone and role in OF_TWO else role
    is_subject = alone or _LEADING.match(masked) or _OWN_CLAUSE.search(masked)
    return Role.SUBJECT if is_subject else Role.UNCLEAR


def _stands_for_no_company(symbol: str, linker: Linker) -> bool:
    """Whether a symbol is spelled as that of a currency pair or of an index."""
    named = linker.link(symbol)
    return bool(named) and not any(is_company(one) for one in named)


def _root(symbol: str) -> str:
    """The symbol without its market: GS for GS.N."""
    return symbol.upper().partition(".")[0] if symbol[:1].isalpha() else symbol.upper()


def _mask(headline: str, wanted: str, mentions: Sequence[Mention]) -> str:
    """The headline with § for the company and ¤ for others; words in small letters where all begin with a capital."""
    named = {word for one in mentions for word in headline[one.start : one.end].split()}
    plain = [word for word in headline.split() if word[:1].isalpha() and word not in named]
    is_titled = sum(word[0].isupper() for word in plain) > 0.7 * len(plain)

    def lower(text: str, is_first: bool) -> str:
        if is_titled:
            return text.lower()
        return text[:1].lower() + text[1:] if is_first and text[1:2].islower() else text

    parts: list[str] = []
    after = 0
    for one in mentions:
        if one.start < after:
            continue
        parts += [lower(headline[after : one.start], after == 0), "§" if _root(one.symbol) == wanted else "¤"]
        after = one.end
    return "".join([*parts, lower(headline[after:], after == 0)])
