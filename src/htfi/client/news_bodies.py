"""Bodies of news that is handed in, and what became of it."""

import msgspec

from htfi.domain.news import KeyPhrase, ScreeningFinding


class SubmittedItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An item as a client posts it. `published_at` has a zone, such as 2026-03-02T14:30:00Z.

    Without an `id` it gets one. `corrects` is the id of an earlier item, which it takes back where it `retracts`.
    """

    headline: str
    id: str = ""
    symbols: list[str] = msgspec.field(default_factory=list[str])
    body: str = ""
    url: str = ""
    publisher: str = ""
    published_at: str = ""
    residency: list[str] = msgspec.field(default_factory=list[str])
    corrects: str = ""
    retracts: bool = False


class SubmittedBody(msgspec.Struct, frozen=True):
    """What became of a posted item at once: `accepted` for the run, `known` before, or `refused` for a reason."""

    id: str
    status: str
    reason: str = ""
    detail: str = ""


class ItemUse(msgspec.Struct, frozen=True):
    """A decision that knew of an item. `is_set_aside`: it had no say, as it was held back or reported before."""

    index: int
    decision: str
    is_set_aside: bool
    verdict: str
    trust: float
    reasons: list[str]
    first_report: str  # id of the first item that reported the same
    route: str
    why: str
    event: str = ""  # the kind of event that its facts state; '' where none were read
    reading: str = ""  # what its facts mean for the decision's asset, in words


class ConsideredItem(msgspec.Struct, frozen=True):
    """An item that a decision considered: untrusted text as data, cleaned, and the words of it that counted.

    `is_cited`: the view or the rationale rests on it.
    """

    id: str
    source: str
    available_at: str
    headline: str
    phrases: list[KeyPhrase]
    verdict: str
    trust: float
    route: str
    is_cited: bool
    reading: str


class ReadNewsBody(msgspec.Struct, frozen=True):
    """The news of a decision whose text its entry holds, and how many items it considered without their text."""

    index: int
    items: list[ConsideredItem]
    num_without_text: int


class PostedItemBody(msgspec.Struct, frozen=True):
    """A posted item, untrusted text as data, and what became of it.

    `status`: waiting (the run has not taken it), entered (no decision has known of it yet), quarantined, released (a
    person has let it out), deduplicated (an earlier item reported the same), used. Decisions are those that the service
    has read, the newest. `phrases` are the words of `clean_headline`, the headline as the sanitiser leaves it, that
    counted; empty before a decision has used it.
    """

    id: str
    number: int
    status: str
    headline: str
    body: str
    symbols: list[str]
    publisher: str
    url: str
    posted_by: str
    posted_at: str
    entered_at: str | None  # in the run's time
    findings: list[ScreeningFinding]
    quarantine_number: int | None
    decisions: list[ItemUse]
    detail: str
    clean_headline: str = ""
    phrases: list[KeyPhrase] = msgspec.field(default_factory=list[KeyPhrase])


class NewsSubmission(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Items for the run, at most 100."""

    items: list[SubmittedItem]


class NewsReceipt(msgspec.Struct, frozen=True):
    """What became of each item at once, in order, and when the run takes those that were accepted."""

    items: list[SubmittedBody]
    detail: str


class NewsPage(msgspec.Struct, frozen=True):
    """Posted items, newest first; `next` is the number to ask for those before, None on the last page."""

    items: list[PostedItemBody]
    next: int | None
