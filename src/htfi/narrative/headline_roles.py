"""Finds the role of a company in a headline by rules on its words: buyer or target, plaintiff or defendant, rated or
rating.

A reader judges news by whom it affects; asked about the other party it answers for the wrong one. So `htfi scenario`
finds the role before a model reads. The rules are patterns over a masked sentence, tried in order.
"""

import re
from collections.abc import Sequence
from enum import StrEnum

from htfi.narrative.encoding.linking import EntityLinker, EntityMention, is_company


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
TWO_COMPANY_ROLES = frozenset(
    {CompanyRole.CUSTOMER, CompanyRole.INVESTOR}
)  # where another company is named as well

# In a masked headline § is the company asked about, ¤ another one; both without a possessive ending.
_OTHER = r"(?:¤|[A-Z][\w&.-]*)"
_POSSESSIVE = r"(?:['’]s?)?"
# Small words between a party and its verb, none of which begins another clause or a passive.
_UP_TO_VERB = (
    r"(?:,?\s+(?!(?:by|after|as|while|but|rivals?|target|supplier|customer)\b)"
    r"(?!(?:be|been|being|was|were)\s+(?:bought|acquired|taken|purchased|snapped|sold|absorbed|courted|approached|sued))"
    r"[a-z\d$€£¥][\w’'.,-]*){0,8}?,?\s+"
)
_FEW_WORDS = r"(?:\s+(?!(?:by|after|as|while|but)\b)[\w¤$€£¥%.,’'&+-]+){0,6}?\s+"
_QUALIFIERS = r"(?:(?:the\s+)?(?:[a-z][\w-]*\s+|U\.S\.\s+|rest\s+of\s+|all\s+of\s+|control\s+of\s+){0,4})"
_BUY = (
    r"(?:buy(?:s|ing)?|bought|acquir(?:e|es|ed|ing)|tak(?:e|es|ing)\s+over|took\s+over|purchas(?:e|es|ed|ing)"
    r"|swallow(?:s|ed|ing)?|snap(?:s|ped|ping)?\s+up|absorb(?:s|ed|ing)?|rescu(?:e|es|ed|ing)|bid(?:s|ding)?\s+for"
    r"|(?:take-?over|acquisition|purchase|buy-?out)\s+of|(?:bid|offer|approach|deal)\s+for|pursu(?:e|es|ed|ing)"
    r"|(?:bids?|offers?)\s+[$€£¥]?[\d.,]+\s?\w*(?:\s+\w+){0,3}\s+for|merger\s+bid\s+for|court(?:s|ed|ing)|swoop(?:s|ed)\s+(?:on|for)"
    r"|pay(?:s|ing)?\s+[$€£¥]?[\d.,]+\s?\w*(?:\s+\w+){0,3}\s+for"
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
RELATED = r"(?:rivals?|competitors?|suppliers?|customers?|peers?|makers?\s+rivals?)"

# The first that matches decides.
RULES: tuple[tuple[CompanyRole, str], ...] = (
    # comparisons and opinions of others
    (CompanyRole.COMPARED, rf"§{_POSSESSIVE},?\s+{RELATED}\b,?\s+{_OTHER}"),
    (
        CompanyRole.COMPARED,
        rf"(?<!¤\s)(?<!¤['’]s\s)\b(?:unlike|than|ahead\s+of|rivals?|competitors?|(?:over|under)takes|beats"
        rf"|behind)\s+(?:{RELATED}\s+)?§",
    ),
    (CompanyRole.ANALYST, r"\b(?:says|said|say|according\s+to|analysts?\s+at)\s+§\s*$"),
    (CompanyRole.ANALYST, r"(?::|\s[–—-])\s*§\s*$"),
    # ratings
    (
        CompanyRole.RATED,
        rf"§{_POSSESSIVE}(?:\s+\w+){{0,3}}?,?\s+(?:is\s+|was\s+)?(?:{_RATE}|raised|cut|lowered|lifted"
        rf"|started|rated|initiated)\b[^;:]*?\b(?:by|at)\s+{_OTHER}",
    ),
    (
        CompanyRole.RATED,
        rf"§{_POSSESSIVE}(?:\s+(?:debt|stock|shares|credit))?,?\s+(?:is\s+|was\s+|gets\s+)?(?:upgraded"
        rf"|downgraded)\b(?!\s+{_OTHER})",
    ),
    (
        CompanyRole.ANALYST,
        rf"\b(?:{_RATE}|raised|cut|lowered|lifted|started|rated|initiated|upgrades?"
        rf"|downgrades?)\b[^;:]*?\b(?:by|at|from)\s+§",
    ),
    (CompanyRole.ANALYST, rf"§{_POSSESSIVE}\s+(?:analysts?\s+)?{_RATE}\s+(?:\w+\s+){{0,3}}?{_OTHER}"),
    (
        CompanyRole.ANALYST,
        rf"§{_POSSESSIVE}\s+(?:analysts?\s+)?{_MOVE}\s+(?:{_TARGETED}\s+(?:on|for|of)"
        rf"\s+)?{_OTHER}{_POSSESSIVE}(?:\s+{_TARGETED}|\s+(?:to|at)\s+[\"“'‘]?{_GRADE})",
    ),
    (
        CompanyRole.ANALYST,
        rf"§{_POSSESSIVE}\s+(?:analysts?\s+)?{_MOVE}\s+{_TARGETED}\s+(?:on|for|of)\s+{_OTHER}",
    ),
    (
        CompanyRole.RATED,
        rf"\b(?:{_RATE}|{_MOVE})\s+(?:\w+\s+){{0,3}}?§{_POSSESSIVE}(?:\s+{_TARGETED}|\s+(?:to|at|from|with"
        rf"|as)\b)",
    ),
    (CompanyRole.RATED, rf"{_OTHER}{_POSSESSIVE}\s+(?:analysts?\s+)?{_RATE}\s+§"),
    (CompanyRole.RATED, rf"\b{_MOVE}\s+{_TARGETED}\s+(?:on|for|of)\s+§"),
    (CompanyRole.ANALYST, r"§\s+(?:says|sees|expects|forecasts)\s+¤"),
    (CompanyRole.RATED, r"¤\s+(?:says|sees|expects|forecasts)\s+§"),
    (CompanyRole.ANALYST, r"§(?:['’]s?)?\s+(?:down|up)grade\b"),
    (CompanyRole.RATED, r"\b(?:down|up)grade\s+[a-z]+\s+§"),
    # suits
    (CompanyRole.DEFENDANT, r"\b(?:orders|ordered|tells|told)\s+§\s+to\s+pay\b"),
    (CompanyRole.DEFENDANT, rf"§{_UP_TO_VERB}(?:be\s+)?(?:sued|accused)\s+(?:by|over|for|in|of)\b"),
    (
        CompanyRole.DEFENDANT,
        rf"§{_UP_TO_VERB}(?:faces?|hit\s+with|named\s+in)\s+(?:[\w-]+\s+){{0,3}}?(?:law)?suits?",
    ),
    (CompanyRole.PLAINTIFF, r"\b(?:sued|accused)\s+by\s+§"),
    (CompanyRole.PLAINTIFF, r"\b(?:law)?suits?\s+(?:from|by|of)\s+§"),
    (CompanyRole.PLAINTIFF, r"§['’]s?\s+(?:[\w-]+\s+){0,2}(?:law)?suit\s+against"),
    (CompanyRole.PLAINTIFF, rf"§{_UP_TO_VERB}{_SUE}\s+"),
    (CompanyRole.DEFENDANT, rf"\b{_SUE}\s+{_QUALIFIERS}§"),
    (CompanyRole.DEFENDANT, r"\b(?:law)?suits?\s+against\s+§"),
    (CompanyRole.DEFENDANT, r"\bw[io]ns?\b[^;:]*\b(?:against|over)\s+§"),
    (CompanyRole.DEFENDANT, r"§\s+sued\b"),
    # orders
    (CompanyRole.SUPPLIER, rf"§{_UP_TO_VERB}{_WIN}{_FEW_WORDS}{_ORDER}\b"),
    (CompanyRole.SUPPLIER, rf"\b{_ORDER}\s+(?:goes\s+)?to\s+§"),
    (CompanyRole.SUPPLIER, rf"§{_UP_TO_VERB}suppl(?:y|ies|ied)\s+{_OTHER}"),
    (CompanyRole.SUPPLIER, rf"\b{_GIVE}\s+§{_POSSESSIVE}{_FEW_WORDS}(?:{_ORDER}|to\s+supply|to\s+build)\b"),
    (
        CompanyRole.CUSTOMER,
        rf"\b{_WIN}{_FEW_WORDS}{_ORDER}\b(?:\s+[\w¤$€£¥%.,’'-]+){{0,6}}?\s+(?:from|with|by)\s+§",
    ),
    (CompanyRole.CUSTOMER, r"\bsuppl(?:y|ies|ied)\s+§"),
    (CompanyRole.CUSTOMER, rf"§{_UP_TO_VERB}{_GIVE}{_FEW_WORDS}(?:{_ORDER}|to\s+supply)"),
    (CompanyRole.CUSTOMER, rf"§{_UP_TO_VERB}order(?:s|ed|ing)?{_FEW_WORDS}from\s+"),
    (CompanyRole.SUPPLIER, rf"\border(?:s|ed|ing)?{_FEW_WORDS}from\s+§"),
    # stakes and parts of companies
    (
        CompanyRole.SELLER,
        rf"§{_UP_TO_VERB}(?:sell(?:s|ing)?|sold|divest(?:s|ed)?|offload(?:s|ed)?|shed(?:s)?)\s+(?!itself)",
    ),
    (
        CompanyRole.SELLER,
        rf"\b{_BUY}\s+(?:[\w¤$€£¥%.,’'-]+\s+){{0,6}}?(?:unit|business|division|arm|assets|stake"
        rf"|operations)\b[^;:]*\bfrom\s+§",
    ),
    (
        CompanyRole.SELLER,
        rf"\b{_BUY}\s+§['’]s?\s+(?:[\w-]+\s+){{0,4}}?(?:unit|business|division|arm|assets|operations"
        rf"|portfolio|stake)",
    ),
    (
        CompanyRole.INVESTOR,
        rf"§{_UP_TO_VERB}(?:tak(?:e|es|ing)|took|buy(?:s|ing)?|bought|rais(?:es|ed|ing)|cuts?|increas(?:es|ed)"
        rf"|has|holds?|builds?|built|acquires?|lifts?|boosts?|trims?|reduces?)"
        rf"\s+(?:[\w¤$€£¥%.,’'-]+\s+){{0,4}}?{_STAKE}\s+in\s+{_QUALIFIERS}{_OTHER}",
    ),
    (
        CompanyRole.INVESTOR,
        rf"§{_UP_TO_VERB}(?:invest(?:s|ed|ing)?|buy(?:s|ing)?|bought)\s+(?:[\w¤$€£¥%.,’'-]+\s+){{0,4}}?in(?:to)?\s+{_QUALIFIERS}¤",
    ),
    (CompanyRole.SUBJECT, rf"\b{_STAKE}\s+in\s+{_QUALIFIERS}§"),
    (CompanyRole.SUBJECT, rf"\binvest(?:s|ed|ing)?\s+(?:[\w¤$€£¥%.,’'-]+\s+){{0,4}}?in\s+{_QUALIFIERS}§"),
    # mergers and take-overs
    (CompanyRole.PARTY, r"§(?:,| and| &)\s+¤[^;:]*\bmerg"),
    (CompanyRole.PARTY, r"¤(?:,| and| &)\s+§[^;:]*\bmerg"),
    (CompanyRole.PARTY, r"\bmerger\s+(?:of|between|with)\s+(?:¤ and )?§"),
    (CompanyRole.PARTY, r"§[^;:]*\bmerg(?:e|es|ed|ing|er)\s+with\b"),
    (CompanyRole.PARTY, r"\bmerg(?:e|es|ed|ing|er)\s+with\s+§"),
    (CompanyRole.PARTY, r"§[^;:]*\bmerger\s+talks"),
    (CompanyRole.SUBJECT, rf"§{_UP_TO_VERB}(?:{_BUY}\s+(?:back|(?:its|their)\s+own)|buy-?backs?)\b"),
    (
        CompanyRole.TARGET,
        rf"§{_UP_TO_VERB}(?:(?:to\s+)?(?:be|been|being)\s+|gets\s+|is\s+|was\s+)?{_BOUGHT}\s+(?:by|to)\b",
    ),
    (CompanyRole.TARGET, rf"§(?:,?\s+[a-z][\w’'-]*){{0,6}}?\s+(?:be|been|being)\s+{_BOUGHT}\b"),
    (
        CompanyRole.ACQUIRER,
        rf"\b(?:{_BOUGHT}|sale|take-?over|buy-?out|acquisition|purchase|sells?\s+itself)(?:"
        rf"\s+[\w¤$€£¥%.,’'-]+){{0,5}}?\s+(?:by|to)\s+{_QUALIFIERS}§",
    ),
    (
        CompanyRole.ACQUIRER,
        rf"\b(?:bid|offer|approach|proposal)\s+for(?:\s+[\w¤$€£¥%.,’'-]+){{0,5}}?\s+by\s+{_QUALIFIERS}§",
    ),
    (CompanyRole.ACQUIRER, rf"\b{_OFFER}\s+(?:from|by)\s+{_QUALIFIERS}§"),
    (
        CompanyRole.ACQUIRER,
        r"\b(?:after|on|rejects?|spurns|accepts?|recommends?|backs?|considers?|weighs|mulls|welcomes)\s+§\s+"
        r"(?:\w+\s+)?(?:bid|offer|approach|proposal)\b",
    ),
    (
        CompanyRole.ACQUIRER,
        r"§(?:['’]s?)?\s+(?:[a-z]+\s+){0,2}?(?:scraps?|drops?|abandons?|completes?|closes?|seals?|approves?|plans?"
        r"|pursues?|eyes?|mulls?|considers?|weighs?|explores?|nears?|seeks?|wants?)\s+(?:[a-z]+\s+){0,2}?¤\s+"
        r"(?:take-?over|acquisition|buy-?out|purchase)\b",
    ),
    (CompanyRole.TARGET, r"¤[^;:]*\s§\s+(?:take-?over|acquisition|buy-?out|purchase)\b"),
    (CompanyRole.ACQUIRER, rf"\bsell(?:s|ing)?\s+(?:[\w¤$€£¥%.,’'-]+\s+){{0,8}}?to\s+{_QUALIFIERS}§"),
    (CompanyRole.ACQUIRER, rf"§['’]s?\s+(?:[\w¤$€£¥%.,’'-]+\s+){{0,4}}?{_OFFER}\b(?!\s+target)"),
    (CompanyRole.ACQUIRER, r"\b(?:rejects|spurns|accepts|rebuffs|welcomes)\s+§['’]"),
    (
        CompanyRole.TARGET,
        rf"§['’]?s?(?:,?\s+[a-z][\w’'-]*){{0,5}}?\s+(?:accept|get|got|receiv|reject|spurn|fend|weigh|mull"
        rf"|review|draw|attract|rebuff|welcome|consider|face|agree|near|in)\w*\s+(?:[\w¤$€£¥%.,’'-]+"
        rf"\s+){{0,6}}?(?:{_OFFER}|sale)\b",
    ),
    (
        CompanyRole.TARGET,
        r"§[^;:]*\b(?:take-?over\s+target|sell\s+itself|sells\s+itself|for\s+sale|be\s+sold)\b",
    ),
    (CompanyRole.TARGET, r"§\s+(?:take-?over|buy-?out|sale)\b"),
    (CompanyRole.ACQUIRER, rf"§{_POSSESSIVE}{_UP_TO_VERB}{_BUY}\s+"),
    (CompanyRole.TARGET, rf"\b{_BUY}\s+{_QUALIFIERS}§"),
)


MAX_CHARS = 300  # of a headline; the roles stand in its beginning
_COMPILED = tuple((role, re.compile(rule)) for role, rule in RULES)
_OPENS_SENTENCE = re.compile(rf"^\W*(?:¤(?:,\s*|\s+and\s+|\s*&\s*|['’]?s?\s+{RELATED}\s+))*§")
_OPENS_CLAUSE = re.compile(
    r"(?:^|[;:–—]|\b(?:after|as|while|but|when|because|before|since))\s*§['’]?s?\s+[a-z]"
)


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
    masked = _mask(headline, wanted, mentions)
    alone = all(_root_symbol(one.symbol) == wanted for one in mentions)
    for role, rule in _COMPILED:
        if rule.search(masked):
            return CompanyRole.SUBJECT if alone and role in TWO_COMPANY_ROLES else role
    is_subject = alone or _OPENS_SENTENCE.match(masked) or _OPENS_CLAUSE.search(masked)
    return CompanyRole.SUBJECT if is_subject else CompanyRole.UNCLEAR


def _stands_for_no_company(symbol: str, linker: EntityLinker) -> bool:
    """Whether a symbol is that of a currency pair or of an index."""
    named = linker.link(symbol)
    return bool(named) and not any(is_company(one) for one in named)


def _root_symbol(symbol: str) -> str:
    """The symbol without its market: GS for GS.N."""
    return symbol.upper().partition(".")[0] if symbol[:1].isalpha() else symbol.upper()


def _mask(headline: str, wanted: str, mentions: Sequence[EntityMention]) -> str:
    """The headline with § for the company and ¤ for others; in lower case where every word begins with a capital."""
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
        parts += [
            lower(headline[after : one.start], after == 0),
            "§" if _root_symbol(one.symbol) == wanted else "¤",
        ]
        after = one.end
    return "".join([*parts, lower(headline[after:], after == 0)])
