"""The part that a company has in a headline: who buys and who is bought, who sues, who is rated. Rules on its words.

A reader judges news by whom they befall; asked about the other party it answers for the wrong one. `htfi scenario` and
the news desk ask before a reader does.
"""

import re
from collections.abc import Sequence
from enum import StrEnum

from htfi.narrative.encoding.linking import Linker, Mention, is_company

MAX_CHARS = 300  # of a headline; who does what to whom it has said by then


class Role(StrEnum):
    """Of a company in a headline."""

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
        """Whether what a reader says of the news is said of a company in this role."""
        return self in _JUDGED

    @property
    def is_clear(self) -> bool:
        return self not in (Role.UNCLEAR, Role.PARTY)


_JUDGED = frozenset({Role.SUBJECT, Role.TARGET, Role.SELLER, Role.DEFENDANT, Role.SUPPLIER, Role.RATED})
_OF_TWO = frozenset({Role.CUSTOMER, Role.INVESTOR})  # where another company is named as well

# In a masked headline § is the company asked about, ¤ another that is named, both without a possessive's ending.
_OTHER = r"(?:¤|[A-Z][\w&.-]*)"
_POSSESSIVE = r"(?:['’]s?)?"
# Small words between a party and its verb, none of which begins another clause or a passive.
_LED = (
    r"(?:,?\s+(?!(?:by|be|been|being|was|were|after|as|while|but|rivals?|target|supplier|customer)\b)"
    r"[a-z\d$€£¥][\w’'.,-]*){0,8}?,?\s+"
)
_FEW = r"(?:\s+(?!(?:by|after|as|while|but)\b)[\w¤$€£¥%.,’'&+-]+){0,6}?\s+"
_KIND = r"(?:(?:the\s+)?(?:[a-z][\w-]*\s+|U\.S\.\s+|rest\s+of\s+|all\s+of\s+|control\s+of\s+){0,4})"
_BUY = (
    r"(?:buy(?:s|ing)?|bought|acquir(?:e|es|ed|ing)|tak(?:e|es|ing)\s+over|took\s+over|purchas(?:e|es|ed|ing)"
    r"|swallow(?:s|ed|ing)?|snap(?:s|ped|ping)?\s+up|absorb(?:s|ed|ing)?|rescu(?:e|es|ed|ing)|bid(?:s|ding)?\s+for"
    r"|(?:take-?over|acquisition|purchase|buy-?out)\s+of|(?:bid|offer|approach|deal)\s+for|pursu(?:e|es|ed|ing)"
    r"|(?:bids?|offers?)\s+[$€£¥]?[\d.,]+\s?\w*(?:\s+\w+){0,3}\s+for|merger\s+bid\s+for|court(?:s|ed|ing)"
    r"|approach(?:es|ed|ing))"
)
_BOUGHT = r"(?:bought|acquired|taken\s+over|purchased|snapped\s+up|swallowed|rescued|sold|absorbed|courted|approached)"
_OFFER = r"(?:bid|offer|approach|take-?over|buy-?out|proposal|suitors?)s?"
_SUE = (
    r"(?:sue[sd]?|suing|(?:fil(?:e|es|ed|ing)|bring(?:s|ing)?|brought|launch(?:es|ed)?)(?:\s+[\w-]+){0,3}?\s+"
    r"(?:law)?suits?\s+against|accus(?:es|ed|ing)|takes?\s+(?=[^,;:]*\bto\s+court\b))"
)
_ORDER = (
    r"(?:orders?|contracts?|deals?|tenders?|business|work)\b(?!\s+(?:to\s+(?:buy|acquire|take)|approval))"
)
_WIN = (
    r"(?:w[io]ns?|gets?|got|lands?|landed|secures?|secured|receives?|received|bags?|bagged|clinch(?:es|ed)|awarded"
    r"|signs?|signed|gains?|picks?\s+up|picked\s+up)"
)
_GIVE = (
    r"(?:awards?|awarded|gives?|gave|hands?|handed|plac(?:es|ed|ing)|picks?|picked|chooses?|chose"
    r"|selects?|selected)"
)
_RATE = (
    r"(?:upgrad(?:e|es|ed|ing)|downgrad(?:e|es|ed|ing)|initiat(?:es|ed|ing)|reiterat(?:es|ed|ing)|rates|resum(?:es|ed)"
    r"|recommends|(?:adds|removes)(?=\s+[A-Z¤§]))"
)
_MOVE = (
    r"(?:rais(?:es|ed|ing)|cuts?|lifts?|lifted|lower(?:s|ed|ing)|boosts?|boosted|trims?|trimmed|slash(?:es|ed)|hikes?"
    r"|ups|keeps?|maintain(?:s|ed)|starts?|started|bumps?|sets?)"
)
_GRADE = (
    r"(?:buy|sell|hold|neutral|overweight|underweight|outperform|underperform|equal-?weight|market\s+perform|strong\s+buy"
    r"|perform|top\s+pick|conviction|junk|investment\s+grade|[ABC][ABC]{0,2}[+-]?\d?)\b"
)
_TARGETED = (
    r"(?:price\s+targets?|targets?|ratings?|estimates?|forecasts?|outlook|coverage|stock|shares|debt|credit)"
)
_STAKE = r"(?:stakes?|holdings?|shares|position|interest)"
_RELATED = r"(?:rivals?|competitors?|suppliers?|customers?|peers?|makers?\s+rivals?)"

# The first that matches decides.
_RULES: tuple[tuple[Role, str], ...] = (
    # what another says or is compared with
    (Role.COMPARED, rf"§{_POSSESSIVE},?\s+{_RELATED}\b,?\s+{_OTHER}"),
    (
        Role.COMPARED,
        rf"(?<!¤\s)(?<!¤['’]s\s)\b(?:unlike|than|ahead\s+of|rivals?|competitors?|(?:over|under)takes|beats"
        rf"|behind)\s+(?:{_RELATED}\s+)?§",
    ),
    (Role.ANALYST, r"\b(?:says|said|say|according\s+to|analysts?\s+at)\s+§\s*$"),
    (Role.ANALYST, r"(?::|\s[–—-])\s*§\s*$"),
    # ratings
    (
        Role.RATED,
        rf"§{_POSSESSIVE}(?:\s+\w+){{0,3}}?,?\s+(?:is\s+|was\s+)?(?:{_RATE}|raised|cut|lowered|lifted"
        rf"|started|rated|initiated)\b[^;:]*?\b(?:by|at)\s+{_OTHER}",
    ),
    (
        Role.RATED,
        rf"§{_POSSESSIVE}(?:\s+(?:debt|stock|shares|credit))?,?\s+(?:is\s+|was\s+|gets\s+)?(?:upgraded"
        rf"|downgraded)\b(?!\s+{_OTHER})",
    ),
    (
        Role.ANALYST,
        rf"\b(?:{_RATE}|raised|cut|lowered|lifted|started|rated|initiated|upgrades?"
        rf"|downgrades?)\b[^;:]*?\b(?:by|at|from)\s+§",
    ),
    (Role.ANALYST, rf"§{_POSSESSIVE}\s+(?:analysts?\s+)?{_RATE}\s+(?:\w+\s+){{0,3}}?{_OTHER}"),
    (
        Role.ANALYST,
        rf"§{_POSSESSIVE}\s+(?:analysts?\s+)?{_MOVE}\s+(?:{_TARGETED}\s+(?:on|for|of)"
        rf"\s+)?{_OTHER}{_POSSESSIVE}(?:\s+{_TARGETED}|\s+(?:to|at)\s+[\"“'‘]?{_GRADE})",
    ),
    (Role.ANALYST, rf"§{_POSSESSIVE}\s+(?:analysts?\s+)?{_MOVE}\s+{_TARGETED}\s+(?:on|for|of)\s+{_OTHER}"),
    (
        Role.RATED,
        rf"\b(?:{_RATE}|{_MOVE})\s+(?:\w+\s+){{0,3}}?§{_POSSESSIVE}(?:\s+{_TARGETED}|\s+(?:to|at|from|with"
        rf"|as)\b)",
    ),
    (Role.RATED, rf"{_OTHER}{_POSSESSIVE}\s+(?:analysts?\s+)?{_RATE}\s+§"),
    (Role.RATED, rf"\b{_MOVE}\s+{_TARGETED}\s+(?:on|for|of)\s+§"),
    # suits
    (Role.DEFENDANT, rf"§{_LED}(?:be\s+)?(?:sued|accused)\s+(?:by|over|for|in|of)\b"),
    (Role.DEFENDANT, rf"§{_LED}(?:faces?|hit\s+with|named\s+in)\s+(?:[\w-]+\s+){{0,3}}?(?:law)?suits?"),
    (Role.PLAINTIFF, r"\b(?:sued|accused)\s+by\s+§"),
    (Role.PLAINTIFF, r"\b(?:law)?suits?\s+(?:from|by|of)\s+§"),
    (Role.PLAINTIFF, r"§['’]s?\s+(?:[\w-]+\s+){0,2}(?:law)?suit\s+against"),
    (Role.PLAINTIFF, rf"§{_LED}{_SUE}\s+"),
    (Role.DEFENDANT, rf"\b{_SUE}\s+{_KIND}§"),
    (Role.DEFENDANT, r"\b(?:law)?suits?\s+against\s+§"),
    (Role.DEFENDANT, r"\bw[io]ns?\b[^;:]*\b(?:against|over)\s+§"),
    (Role.DEFENDANT, r"§\s+sued\b"),
    # orders
    (Role.SUPPLIER, rf"§{_LED}{_WIN}{_FEW}{_ORDER}\b"),
    (Role.SUPPLIER, rf"\b{_ORDER}\s+(?:goes\s+)?to\s+§"),
    (Role.SUPPLIER, rf"§{_LED}suppl(?:y|ies|ied)\s+{_OTHER}"),
    (Role.SUPPLIER, rf"\b{_GIVE}\s+§{_POSSESSIVE}{_FEW}(?:{_ORDER}|to\s+supply|to\s+build)\b"),
    (Role.CUSTOMER, rf"\b{_WIN}{_FEW}{_ORDER}\b(?:\s+[\w¤$€£¥%.,’'-]+){{0,6}}?\s+(?:from|with|by)\s+§"),
    (Role.CUSTOMER, r"\bsuppl(?:y|ies|ied)\s+§"),
    (Role.CUSTOMER, rf"§{_LED}{_GIVE}{_FEW}(?:{_ORDER}|to\s+supply)"),
    (Role.CUSTOMER, rf"§{_LED}order(?:s|ed|ing)?{_FEW}from\s+"),
    (Role.SUPPLIER, rf"\border(?:s|ed|ing)?{_FEW}from\s+§"),
    # stakes and parts of companies
    (
        Role.SELLER,
        rf"§{_LED}(?:sell(?:s|ing)?|sold|divest(?:s|ed)?|offload(?:s|ed)?|shed(?:s)?)\s+(?!itself)",
    ),
    (
        Role.SELLER,
        rf"\b{_BUY}\s+(?:[\w¤$€£¥%.,’'-]+\s+){{0,6}}?(?:unit|business|division|arm|assets|stake"
        rf"|operations)\b[^;:]*\bfrom\s+§",
    ),
    (
        Role.SELLER,
        rf"\b{_BUY}\s+§['’]s?\s+(?:[\w-]+\s+){{0,4}}?(?:unit|business|division|arm|assets|operations"
        rf"|portfolio|stake)",
    ),
    (
        Role.INVESTOR,
        rf"§{_LED}(?:tak(?:e|es|ing)|took|buy(?:s|ing)?|bought|rais(?:es|ed|ing)|cuts?|increas(?:es|ed)"
        rf"|has|holds?|builds?|built|acquires?|lifts?|boosts?|trims?|reduces?)"
        rf"\s+(?:[\w¤$€£¥%.,’'-]+\s+){{0,4}}?{_STAKE}\s+in\s+{_KIND}{_OTHER}",
    ),
    (
        Role.INVESTOR,
        rf"§{_LED}(?:invest(?:s|ed|ing)?|buy(?:s|ing)?|bought)\s+(?:[\w¤$€£¥%.,’'-]+\s+){{0,4}}?in(?:to)?\s+{_KIND}¤",
    ),
    (Role.SUBJECT, rf"\b{_STAKE}\s+in\s+{_KIND}§"),
    (Role.SUBJECT, rf"\binvest(?:s|ed|ing)?\s+(?:[\w¤$€£¥%.,’'-]+\s+){{0,4}}?in\s+{_KIND}§"),
    # mergers and take-overs
    (Role.PARTY, r"§(?:,| and| &)\s+¤[^;:]*\bmerg"),
    (Role.PARTY, r"¤(?:,| and| &)\s+§[^;:]*\bmerg"),
    (Role.PARTY, r"\bmerger\s+(?:of|between|with)\s+(?:¤ and )?§"),
    (Role.PARTY, r"§[^;:]*\bmerg(?:e|es|ed|ing|er)\s+with\b"),
    (Role.PARTY, r"\bmerg(?:e|es|ed|ing|er)\s+with\s+§"),
    (Role.PARTY, r"§[^;:]*\bmerger\s+talks"),
    (Role.SUBJECT, rf"§{_LED}(?:{_BUY}\s+(?:back|(?:its|their)\s+own)|buy-?backs?)\b"),
    (Role.TARGET, rf"§{_LED}(?:(?:to\s+)?(?:be|been|being)\s+|gets\s+|is\s+|was\s+)?{_BOUGHT}\s+(?:by|to)\b"),
    (Role.TARGET, rf"§(?:,?\s+[a-z][\w’'-]*){{0,6}}?\s+(?:be|been|being)\s+{_BOUGHT}\b"),
    (
        Role.ACQUIRER,
        rf"\b(?:{_BOUGHT}|sale|take-?over|buy-?out|acquisition|purchase|sells?\s+itself)(?:"
        rf"\s+[\w¤$€£¥%.,’'-]+){{0,5}}?\s+(?:by|to)\s+{_KIND}§",
    ),
    (
        Role.ACQUIRER,
        rf"\b(?:bid|offer|approach|proposal)\s+for(?:\s+[\w¤$€£¥%.,’'-]+){{0,5}}?\s+by\s+{_KIND}§",
    ),
    (Role.ACQUIRER, rf"\b{_OFFER}\s+(?:from|by)\s+{_KIND}§"),
    (Role.ACQUIRER, rf"§['’]s?\s+(?:[\w¤$€£¥%.,’'-]+\s+){{0,4}}?{_OFFER}\b(?!\s+target)"),
    (Role.ACQUIRER, r"\b(?:rejects|spurns|accepts|rebuffs|welcomes)\s+§['’]"),
    (
        Role.TARGET,
        rf"§['’]?s?(?:,?\s+[a-z][\w’'-]*){{0,5}}?\s+(?:accept|get|got|receiv|reject|spurn|fend|weigh|mull"
        rf"|review|draw|attract|rebuff|welcome|consider|face|agree|near|in)\w*\s+(?:[\w¤$€£¥%.,’'-]+"
        rf"\s+){{0,6}}?(?:{_OFFER}|sale)\b",
    ),
    (Role.TARGET, r"§[^;:]*\b(?:take-?over\s+target|sell\s+itself|sells\s+itself|for\s+sale|be\s+sold)\b"),
    (Role.TARGET, r"§\s+(?:take-?over|buy-?out|sale)\b"),
    (Role.ACQUIRER, rf"§{_POSSESSIVE}{_LED}{_BUY}\s+"),
    (Role.TARGET, rf"\b{_BUY}\s+{_KIND}§"),
)
_COMPILED = tuple((role, re.compile(rule)) for role, rule in _RULES)
_LEADING = re.compile(rf"^\W*(?:¤(?:,\s*|\s+and\s+|\s*&\s*|['’]?s?\s+{_RELATED}\s+))*§")
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
            if _root(symbol) not in known and symbol.isupper():
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
            return Role.SUBJECT if alone and role in _OF_TWO else role
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
