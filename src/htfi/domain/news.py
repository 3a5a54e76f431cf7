"""What becomes of a news item before a model reads it: how it was screened, scored and routed. Narrative fills these.

All of it is recorded with the decision that it shaped, so that an auditor can ask why an item counted, or did not.
"""

from enum import StrEnum

import msgspec

from htfi.domain.events import News

TRUST_STEPS = 1000  # trust and scores are recorded in thousandths


class Screening(StrEnum):
    """The sanitiser's verdict on an item: use it, use it for less, hold it until a person admits it."""

    PASS = "pass"
    DISCOUNT = "discount"
    QUARANTINE = "quarantine"


class Route(StrEnum):
    """Who reads an item, from the cheapest to the dearest."""

    TEMPLATE = "template"  # no model: it is cited at most
    ENCODER = "encoder"
    DRAFT = "draft"
    TARGET = "target"
    FRONTIER = "frontier"


class ScreeningFinding(msgspec.Struct, frozen=True, gc=False):
    """One reason for a verdict: the rule that objects, how strongly (0–1), and a line of its own for a person.

    `detail` quotes nothing that was hidden, and at most 120 characters.
    """

    rule: str
    strength: float
    detail: str


class ScreenedItem(msgspec.Struct, frozen=True):
    """An item as the sanitiser leaves it.

    `item` is cleaned and may be shown, scored and read. `trust` 0–1 is how much of its effect counts: 1 for a clean
    item of a trusted source, 0 in quarantine. `cluster` is the id of the first item that reported the same,
    its own where it is the first; `num_alike` counts the items of the cluster so far. `digest` (hex) names its
    cleaned text, the same wherever and whenever it is met.
    """

    item: News
    verdict: Screening
    trust: float
    findings: tuple[ScreeningFinding, ...] = ()
    cluster: str = ""
    num_alike: int = 1
    digest: str = ""


class NewsScores(msgspec.Struct, frozen=True, gc=False):
    """The encoder's scores of an item.

    sentiment −1..1 is P(good) − P(bad) for the price of what it is about; stance −1..1 is P(hawkish) − P(dovish)
    of monetary policy; `event` is its likeliest kind with its probability; relevance 0–1 to any price; novelty 0–1
    against what was read before; `symbols` those that its text names.
    """

    sentiment: float
    stance: float
    event: str
    event_confidence: float
    relevance: float
    novelty: float
    symbols: tuple[str, ...] = ()
    encoder: str = ""  # name and digest of who scored


class ItemReading(msgspec.Struct, frozen=True, gc=False):
    """What the facts of an item mean for the asset of a decision (`narrative.facts.reading`).

    `event`, `modality`, `tense` and `role` are those of the facts; `score` −1..1 is P(up) − P(down), `direction` −1, 0
    or 1 what is stated of it; `size_sigmas` in daily standard deviations; `volatility` how many times the usual the
    day's move is; `silence` says why nothing is stated, '' where it is; `lines` of the table `effects` spoke.
    `earned` 0–1 is the share of the stated move that moves after such events have shown so far.
    """

    event: str
    event_confidence: float
    modality: str
    tense: str
    role: str
    relevance: float
    score: float
    direction: int
    size_sigmas: float
    volatility: float
    confidence: float
    silence: str
    lines: tuple[int, ...]
    effects: str  # version of the table
    facts: str  # version of the facts
    reader: str  # name and digest of who read
    earned: float = 0.0
    # How many passages of the body were read, and how what they say stands to the headline: 'agrees', 'disagrees',
    # 'adds', or ''. Unset in entries before facts/2, and where no passage was read.
    num_passages: int | msgspec.UnsetType = msgspec.UNSET
    body: str | msgspec.UnsetType = msgspec.UNSET


class ReadingBudget(msgspec.Struct, frozen=True, gc=False):
    """What a router has for one decision: the deadline of the reading, the time expected to remain, and money."""

    reading_deadline_ms: float = msgspec.field(name="deadline_ms")
    remaining_ms: float = msgspec.field(name="budget_ms")
    frontier_cents: float = 0.0


class NewsItemAudit(msgspec.Struct, frozen=True):
    """An item as a decision knew it: the sanitiser's verdict, the encoder's scores, its route and why."""

    id: str
    source: str
    available_at_ns: int
    verdict: Screening
    trust: float
    reasons: tuple[str, ...]  # of the verdict, as '{rule}: {detail}'
    num_alike: int
    scores: NewsScores | None
    route: Route
    why: str  # the route's reason
    position: float = 1.0  # at stake, 0–1: the largest among its symbols
    first_report: str = msgspec.field(
        default="", name="told_before"
    )  # id of the first item that reported the same
    is_tagged: bool = False  # it came with symbols, or names one of the run's
    # Share of the forecast's 90% band by which it may move an end of that band, whatever its reader's track record.
    # Unset in entries before narrator version 2.
    max_moved: float | msgspec.UnsetType = msgspec.UNSET
    # What its facts mean for the decision's asset. Unset in earlier entries, and where no facts were read.
    reading: ItemReading | msgspec.UnsetType = msgspec.UNSET
    # What changed in a central bank's document since the last of its series, in lines of words. Unset elsewhere.
    statement: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


class PhraseKind(StrEnum):
    """Why words of an item counted."""

    NAME = "name"
    FIGURE = "figure"
    SIDE = "side"
    WORD = "word"  # weighed by a model


class KeyPhrase(msgspec.Struct, frozen=True, gc=False):
    """Words of an item that counted for what it was read to say: characters (Unicode code points) `start` to before
    `end` of its cleaned headline, and why, in words of our own.
    """

    start: int
    end: int
    kind: PhraseKind
    why: str


class NewsContext(msgspec.Struct, frozen=True):
    """What a decision knew of the news: items considered, items set aside, and whether something is suspected."""

    considered: tuple[NewsItemAudit, ...]
    set_aside: tuple[NewsItemAudit, ...]  # in quarantine, or reported before
    reading_budget: ReadingBudget = msgspec.field(name="means")
    suspicion: str = ""  # why the secure mode is on; empty where it is off
    reset_by: str = msgspec.field(default="", name="cleared")  # who ended the last suspicion, and why
