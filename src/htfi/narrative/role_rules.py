"""The rules by which `roles` finds the part of a company in a headline: patterns over a masked sentence, in order."""

from enum import StrEnum


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
OF_TWO = frozenset({Role.CUSTOMER, Role.INVESTOR})  # where another company is named as well

# In a masked headline § is the company asked about, ¤ another that is named, both without a possessive's ending.
_OTHER = r"(?:¤|[A-Z][\w&.-]*)"
_POSSESSIVE = r"(?:['’]s?)?"
# Small words between a party and its verb, none of which begins another clause or a passive.
_LED = (
    r"(?:,?\s+(?!(?:by|after|as|while|but|rivals?|target|supplier|customer)\b)"
    r"(?!(?:be|been|being|was|were)\s+(?:bought|acquired|taken|purchased|snapped|sold|absorbed|courted|approached|sued))"
    r"[a-z\d$€£¥][\w’'.,-]*){0,8}?,?\s+"
)
_FEW = r"(?:\s+(?!(?:by|after|as|while|but)\b)[\w¤$€£¥%.,’'&+-]+){0,6}?\s+"
_KIND = r"(?:(?:the\s+)?(?:[a-z][\w-]*\s+|U\.S\.\s+|rest\s+of\s+|all\s+of\s+|control\s+of\s+){0,4})"
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
RULES: tuple[tuple[Role, str], ...] = (
    # what another says or is compared with
    (Role.COMPARED, rf"§{_POSSESSIVE},?\s+{RELATED}\b,?\s+{_OTHER}"),
    (
        Role.COMPARED,
        rf"(?<!¤\s)(?<!¤['’]s\s)\b(?:unlike|than|ahead\s+of|rivals?|competitors?|(?:over|under)takes|beats"
        rf"|behind)\s+(?:{RELATED}\s+)?§",
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
    (Role.ANALYST, r"§\s+(?:says|sees|expects|forecasts)\s+¤"),
    (Role.RATED, r"¤\s+(?:says|sees|expects|forecasts)\s+§"),
    (Role.ANALYST, r"§(?:['’]s?)?\s+(?:down|up)grade\b"),
    (Role.RATED, r"\b(?:down|up)grade\s+[a-z]+\s+§"),
    # suits
    (Role.DEFENDANT, r"\b(?:orders|ordered|tells|told)\s+§\s+to\s+pay\b"),
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
    (
        Role.ACQUIRER,
        r"\b(?:after|on|rejects?|spurns|accepts?|recommends?|backs?|considers?|weighs|mulls|welcomes)\s+§\s+"
        r"(?:\w+\s+)?(?:bid|offer|approach|proposal)\b",
    ),
    (
        Role.ACQUIRER,
        r"§(?:['’]s?)?\s+(?:[a-z]+\s+){0,2}?(?:scraps?|drops?|abandons?|completes?|closes?|seals?|approves?|plans?"
        r"|pursues?|eyes?|mulls?|considers?|weighs?|explores?|nears?|seeks?|wants?)\s+(?:[a-z]+\s+){0,2}?¤\s+"
        r"(?:take-?over|acquisition|buy-?out|purchase)\b",
    ),
    (Role.TARGET, r"¤[^;:]*\s§\s+(?:take-?over|acquisition|buy-?out|purchase)\b"),
    (Role.ACQUIRER, rf"\bsell(?:s|ing)?\s+(?:[\w¤$€£¥%.,’'-]+\s+){{0,8}}?to\s+{_KIND}§"),
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
