"""Finds the role of a company in a headline by rules on its words: buyer or target, plaintiff or defendant, rated or
rating.

A reader judges news by whom it affects; asked about the other party it answers for the wrong one. So `htfi scenario`
finds the role before a model reads. The rules are patterns over a masked sentence, tried in order.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from htfi.narrative.encoding.linking import EntityLinker, EntityMention, is_company
from htfi.narrative.patterns import FilteredPattern, Patterns, PatternTable, deferred


class CompanyRole(StrEnum):
    """The role of a company in a headline."""

    SUBJECT = "the one that it is about"
    ACQUIRER = "the buyer"
    TARGET = "the one to be bought"
    SELLER = "the seller"
    PARTY = "one of two that merge"
    PLAINTIFF = "the plaintiff"
    DEFENDANT = "the defendant"
    SUPPLIER = "the supplier"
    CUSTOMER = "the customer"
    ANALYST = "the one that rates"
    RATED = "the one that is rated"
    INVESTOR = "the investor"
    COMPARED = "named only for comparison"
    UNCLEAR = "in no clear part"
    NOT_NAMED = "not named"

    @property
    def is_judged(self) -> bool:
        """Whether a reader's opinion of the news is an opinion on a company in this role."""
        return self in _JUDGED

    @property
    def is_clear(self) -> bool:
        return self not in (CompanyRole.UNCLEAR, CompanyRole.PARTY)


_JUDGED = frozenset(
    {
        CompanyRole.SUBJECT,
        CompanyRole.TARGET,
        CompanyRole.SELLER,
        CompanyRole.DEFENDANT,
        CompanyRole.SUPPLIER,
        CompanyRole.RATED,
    }
)
TWO_COMPANY_ROLES = frozenset({CompanyRole.CUSTOMER, CompanyRole.INVESTOR})  # only beside another company


MAX_CHARS = 300  # of a headline; the roles stand in its beginning
_DATA = Patterns("htfi.narrative", "headline_roles.toml", "parts")
# The first that matches gives the role.
RULES = tuple((CompanyRole[one["role"]], FilteredPattern(one["pattern"])) for one in _DATA.entries("rules"))
_RULE_TABLE = PatternTable(rule for _, rule in RULES)
_ENDS_IN_COMPANY = [rule.text.endswith(r"§\s*$") for _, rule in RULES]
_RELATED = _DATA.text("related")
_OPENS_SENTENCE = deferred(rf"^\W*(?:¤(?:,\s*|\s+and\s+|\s*&\s*|['’]?s?\s+{_RELATED}\s+))*§")
# '…; § said': what stands behind the company, and before it, up to blanks.
_SAYS_SOMETHING = re.compile(r"§['’]?s?\s+[a-z]")
_ENDS_CLAUSE = re.compile(r"(?:[;:–—]|\b(?:after|as|while|but|when|because|before|since))$")
_MAX_OPENER = 8  # characters of the longest of these words, and one before it


def company_roles(symbols: Sequence[str], headline: str, linker: EntityLinker) -> dict[str, CompanyRole]:
    """The role of each symbol in a headline; a symbol that stands in it as it is written counts as named.

    An index, a currency or a commodity has no role: the news is about it as it is. So is news in which no company is
    named.
    """
    headline = headline[:MAX_CHARS]
    mentions = [one for one in linker.mentions(headline, symbols) if is_company(one.symbol)]
    if not headline.isupper():
        known = {_root_symbol(one.symbol) for one in mentions}
        for symbol in symbols:
            if _root_symbol(symbol) not in known and symbol.isupper() and len(symbol) > 1:
                found = re.finditer(rf"(?<![\w.]){re.escape(symbol)}(?!\w)", headline)
                mentions += [EntityMention(one.start(), one.end(), symbol) for one in found]
    mentions.sort(key=lambda one: one.start)
    return {symbol: _role_of(symbol, headline, mentions, linker) for symbol in symbols}


def _role_of(
    symbol: str, headline: str, mentions: Sequence[EntityMention], linker: EntityLinker
) -> CompanyRole:
    """`mentions` are of companies."""
    if not mentions or not is_company(symbol) or _stands_for_no_company(symbol, linker):
        return CompanyRole.SUBJECT
    wanted = _root_symbol(symbol)
    if not any(_root_symbol(one.symbol) == wanted for one in mentions):
        return CompanyRole.NOT_NAMED if linker.knows(symbol) else CompanyRole.UNCLEAR
    return _ruled_role(_sentence(headline, mentions), wanted)


def mention_roles(
    headline: str, mentions: Sequence[EntityMention], symbols: Sequence[str]
) -> list[CompanyRole]:
    """The role of each company that a headline mentions by a symbol; mentions of one symbol are one company."""
    headline = headline[:MAX_CHARS]
    sentence = _sentence(headline, [one for one in mentions if one.end <= len(headline)])
    return [
        _ruled_role(sentence, wanted) if wanted in sentence.named else CompanyRole.UNCLEAR
        for wanted in map(_root_symbol, symbols)
    ]


class _Sentence(NamedTuple):
    """A headline by its mentions: the words before, between and behind them, the company of each that lies over none
    before it, and all companies named; companies are symbols without their market.
    """

    words: list[str]
    companies: list[str]
    named: frozenset[str]


def _ruled_role(sentence: _Sentence, wanted: str) -> CompanyRole:
    """The role that the first rule gives to the company `wanted`, a symbol without its market."""
    masked = _masked(sentence, wanted)
    alone = len(sentence.named) == 1
    ends_in_company = masked.rstrip().endswith("§")
    for place in _RULE_TABLE.candidates(masked):
        role, rule = RULES[place]
        if (ends_in_company or not _ENDS_IN_COMPANY[place]) and rule.search(masked):
            return CompanyRole.SUBJECT if alone and role in TWO_COMPANY_ROLES else role
    is_subject = alone or _OPENS_SENTENCE.match(masked) or _opens_clause(masked)
    return CompanyRole.SUBJECT if is_subject else CompanyRole.UNCLEAR


def _opens_clause(masked: str) -> bool:
    """Whether the company opens a clause."""
    for match in _SAYS_SOMETHING.finditer(masked):
        before = masked[: match.start()].rstrip()
        if not before or _ENDS_CLAUSE.search(before, max(len(before) - _MAX_OPENER, 0)):
            return True
    return False


def _stands_for_no_company(symbol: str, linker: EntityLinker) -> bool:
    """Whether a symbol is that of a currency pair or of an index."""
    named = linker.link(symbol)
    return bool(named) and not any(is_company(one) for one in named)


def _root_symbol(symbol: str) -> str:
    """The symbol without its market: GS for GS.N."""
    return symbol.upper().partition(".")[0] if symbol[:1].isalpha() else symbol.upper()


def _masked(sentence: _Sentence, wanted: str) -> str:
    """The headline with § for the company and ¤ for others."""
    first, *others = sentence.words
    marks = ["§" if one == wanted else "¤" for one in sentence.companies]
    return first + "".join(chain.from_iterable(zip(marks, others, strict=True)))


def _sentence(headline: str, mentions: Sequence[EntityMention]) -> _Sentence:
    """In lower case where every word begins with a capital."""
    named = {word for one in mentions for word in headline[one.start : one.end].split()}
    num_plain = num_capitals = 0
    for word in headline.split():
        if word[0].isalpha() and word not in named:
            num_plain += 1
            num_capitals += word[0].isupper()
    is_titled = num_capitals > 0.7 * num_plain

    def lower(text: str, is_first: bool) -> str:
        if is_titled:
            return text.lower()
        return text[:1].lower() + text[1:] if is_first and text[1:2].islower() else text

    words: list[str] = []
    companies: list[str] = []
    after = 0
    for one in mentions:
        if one.start < after:
            continue
        words.append(lower(headline[after : one.start], after == 0))
        companies.append(_root_symbol(one.symbol))
        after = one.end
    words.append(lower(headline[after:], after == 0))
    return _Sentence(words, companies, frozenset(_root_symbol(one.symbol) for one in mentions))
