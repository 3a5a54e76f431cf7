"""The facts of a news item as a typed record: what happened, who did it to whom, how it is told, and the figures.

Computed once per item (`extraction.py`); what they mean for one asset is a second step (`effects.py`), so that one
record serves every asset that is asked about. Every part has a confidence 0–1 and may be unknown.
"""

from enum import StrEnum

import msgspec

from htfi.narrative.facts.figures import Figure
from htfi.narrative.facts.policy.action import PolicyAction
from htfi.narrative.facts.prior_changes import PriorChange
from htfi.narrative.facts.surprises import Surprise

FACTS_VERSION = "facts/2"  # 2: passages of the body are read


class EventKind(StrEnum):
    """What a news item reports. The groups are those of `EventGroup`."""

    EARNINGS = "earnings"
    GUIDANCE = "guidance"
    SALES_UPDATE = "sales_update"  # deliveries, traffic, monthly figures
    ACQUISITION = "acquisition"
    DIVESTITURE = "divestiture"
    DEAL = "deal"  # contract, order, partnership, licence
    PRODUCT = "product"
    APPROVAL = "approval"  # granted or refused: drug, licence, merger, permit
    TRIAL_RESULT = "trial_result"
    RECALL = "recall"
    LAWSUIT = "lawsuit"
    INVESTIGATION = "investigation"  # probes, fraud, admissions, fines
    RATING = "rating"  # of analysts
    CREDIT_RATING = "credit_rating"
    DIVIDEND = "dividend"
    BUYBACK = "buyback"
    OFFERING = "offering"
    DEBT = "debt"
    BANKRUPTCY = "bankruptcy"
    LAYOFFS = "layoffs"
    MANAGEMENT = "management"
    EXPANSION = "expansion"
    DISRUPTION = "disruption"  # outage, fire, strike, shortage
    CYBERATTACK = "cyberattack"
    STAKE = "stake"  # holdings bought and sold, activists, insiders
    INDEX_CHANGE = "index_change"
    SPLIT = "split"
    SHORT_REPORT = "short_report"
    ROUTINE = "routine"  # meetings, calendars, descriptions, filings
    INFLATION = "inflation"
    JOBS = "jobs"
    GROWTH = "growth"
    ACTIVITY = "activity"
    HOUSING = "housing"
    TRADE_BALANCE = "trade_balance"
    FISCAL = "fiscal"
    RATE_DECISION = "rate_decision"
    POLICY_GUIDANCE = "policy_guidance"
    ASSET_PURCHASES = "asset_purchases"
    FX_INTERVENTION = "fx_intervention"
    SUPPLY = "supply"
    INVENTORIES = "inventories"
    DEMAND = "demand"
    HARVEST = "harvest"
    CURRENCY_POLICY = "currency_policy"
    ELECTION = "election"
    GOVERNMENT = "government"
    WAR = "war"
    SANCTIONS = "sanctions"
    TARIFFS = "tariffs"
    REGULATION = "regulation"
    DISASTER = "disaster"
    CRYPTO_ADOPTION = "crypto_adoption"
    CRYPTO_SECURITY = "crypto_security"
    MARKET_MOVE = "market_move"
    COMMENTARY = "commentary"
    TRADING_STATUS = "trading_status"
    UNRELATED = "unrelated"
    UNKNOWN = "unknown"

    @property
    def group(self) -> "EventGroup":
        return _GROUP_OF[self]


class EventGroup(StrEnum):
    """What kinds of event have in common: about whom they are, and what their axis means."""

    COMPANY = "company"  # axis: good for the company it is about
    MACRO = "macro"  # axis: more of what is measured
    CENTRAL_BANK = "central_bank"  # axis: tighter policy; of an intervention, for its own currency
    COMMODITY = "commodity"  # axis: more of what is measured (supply, stocks, demand, crop)
    POLITICS = "politics"  # axis: easing of the strain, friendlier to markets
    CRYPTO = "crypto"
    MARKET = "market"  # axis: up, bullish
    NONE = "none"


_E = EventKind
_MACRO = (_E.INFLATION, _E.JOBS, _E.GROWTH, _E.ACTIVITY, _E.HOUSING, _E.TRADE_BALANCE, _E.FISCAL)
_BANKS = (_E.RATE_DECISION, _E.POLICY_GUIDANCE, _E.ASSET_PURCHASES, _E.FX_INTERVENTION, _E.CURRENCY_POLICY)
_COMMODITY = (_E.SUPPLY, _E.INVENTORIES, _E.DEMAND, _E.HARVEST)
_POLITICS = (_E.ELECTION, _E.GOVERNMENT, _E.WAR, _E.SANCTIONS, _E.TARIFFS, _E.REGULATION, _E.DISASTER)
_GROUP_OF = {
    **dict.fromkeys(EventKind, EventGroup.COMPANY),
    **dict.fromkeys(_MACRO, EventGroup.MACRO),
    **dict.fromkeys(_BANKS, EventGroup.CENTRAL_BANK),
    **dict.fromkeys(_COMMODITY, EventGroup.COMMODITY),
    **dict.fromkeys(_POLITICS, EventGroup.POLITICS),
    **dict.fromkeys((_E.CRYPTO_ADOPTION, _E.CRYPTO_SECURITY), EventGroup.CRYPTO),
    **dict.fromkeys((_E.MARKET_MOVE, _E.COMMENTARY, _E.TRADING_STATUS), EventGroup.MARKET),
    **dict.fromkeys((_E.UNRELATED, _E.UNKNOWN), EventGroup.NONE),
}


class PartyRole(StrEnum):
    """What a party named in an item is to its event."""

    SUBJECT = "subject"
    OBJECT = "object"
    ACQUIRER = "acquirer"
    TARGET = "target"
    SELLER = "seller"
    PLAINTIFF = "plaintiff"
    DEFENDANT = "defendant"
    RATER = "rater"
    RATED = "rated"
    SUPPLIER = "supplier"
    CUSTOMER = "customer"
    INVESTOR = "investor"
    PARTNER = "partner"
    WINNER = "winner"
    LOSER = "loser"
    PEER = "peer"
    REGULATOR = "regulator"
    SPEAKER = "speaker"
    BYSTANDER = "bystander"


KINDS = tuple(
    kind for kind in EventKind if kind is not EventKind.UNKNOWN
)  # in the order of the network's heads
ROLES = tuple(PartyRole)


class Modality(StrEnum):
    """How sure the item says its event is."""

    DID = "did"
    WILL = "will"
    MAY = "may"
    DENIES = "denies"
    RUMOUR = "rumour"


class Tense(StrEnum):
    """Whether the item reports something new."""

    FACT = "fact"
    EXPECTED = "expected"
    RECAP = "recap"


class Party(msgspec.Struct, frozen=True, gc=False):
    """A party named in the item: characters `start` to before `end` of its text, and the symbols it is known by.

    `effect` −1…1 is P(good) − P(bad) of the event for this party; `confidence` that of the role.
    """

    name: str
    start: int
    end: int
    role: PartyRole
    confidence: float
    effect: float
    symbols: tuple[str, ...] = ()


class TextFault(StrEnum):
    """Why a text states nothing, whatever its words."""

    NONE = ""
    EMPTY = "too few words"
    CUT = "cut in the middle"
    CONTRADICTORY = "contradicts itself"
    WITHDRAWN = "withdrawn"
    OURSELVES = "about a forecasting system"


class BodyStance(StrEnum):
    """How what a body says stands to its headline."""

    NONE = ""  # no passage was read, or none says anything of it
    AGREES = "agrees"
    DISAGREES = "disagrees"
    ADDS = "adds"  # the headline states no side, the body does


class BodyFacts(msgspec.Struct, frozen=True, gc=False):
    """What the passages of a body say: how many were read, and of those on the headline's event the mean side −1…1,
    which is the tone for companies and markets and the axis of its kind elsewhere.
    """

    num_passages: int
    stance: BodyStance
    side: float


class NewsFacts(msgspec.Struct, frozen=True):
    """The facts of one item.

    `axis` −1…1 is P(up) − P(down) along the axis of the kind's group (`EventGroup`), `axis_neutral` the probability of
    neither; `tone` −1…1 is P(good) − P(bad) for the main company, asset or market, `neutral` that of neither. Where a
    body was read these are means in which the headline counts more.
    `relevant` is the probability that it bears on any price. `regions` are those of economies ('US', 'EA', 'JP').
    """

    text: str
    event: EventKind
    event_confidence: float
    axis: float
    axis_neutral: float
    tone: float
    neutral: float
    modality: Modality
    modality_confidence: float
    tense: Tense
    tense_confidence: float
    relevant: float
    negated: bool = False
    parties: tuple[Party, ...] = ()
    symbols: tuple[str, ...] = ()  # known names in the text: firms, banks, indices, commodities, currencies
    regions: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    surprises: tuple[Surprise, ...] = ()
    changes: tuple[PriorChange, ...] = ()
    action: PolicyAction | None = None  # of a central bank, from the headline and the body
    body: BodyFacts | None = None  # None where no passage was read
    fault: TextFault = TextFault.NONE
    reader: str = ""  # name and digest of the network; empty where code alone read
    version: str = FACTS_VERSION

    @property
    def is_news(self) -> bool:
        """Whether it states something new, which did or will happen."""
        return self.tense is Tense.FACT and self.event is not EventKind.UNRELATED
