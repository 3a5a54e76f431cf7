"""News that a service hands to its run as data, and what became of it: refused, waiting, held back, or known to
decisions.

An item is parsed as a row of any feed is, written down for the run, and enters it at the run's own time.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from htfi.adapters.stores.admissions import ADMITTED_FILE, read_admissions
from htfi.adapters.stores.posted_news import PostedNewsFile
from htfi.client.news_bodies import ItemUse, PostedItemBody, SubmittedBody, SubmittedItem
from htfi.domain.decision import Decision
from htfi.domain.events import News, QuarantinedRow
from htfi.domain.news import KeyPhrase, NewsItemAudit
from htfi.domain.time import Clock, SystemClock, format_ns
from htfi.narrative.facts.wording import reading_words
from htfi.narrative.sanitising.config import MAX_HEADLINE_CHARS
from htfi.narrative.sanitising.deobfuscation import deobfuscate
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.spec import SourceSpec
from htfi.pipeline.operator_actions import POSTED, AppliedAction, PostedEntry, PostedNews
from htfi.wiring.ledger import DATABASE, is_running
from htfi.wiring.quarantine import QuarantinedItem, list_quarantined
from htfi.wiring.request_token import RequestToken
from htfi.wiring.service.phrases import phrases_of

MAX_USES = 100  # of an item, by decisions, that are named
MAX_ITEM_BYTES = 1_000_000  # as a row of a feed


def uses_of(index: int, decision: Decision) -> list[tuple[str, ItemUse]]:
    """The posted items that a decision knew of, by id."""
    context = decision.news_context
    if context is None:
        return []
    found = [(one, False) for one in context.considered if one.source == POSTED]
    found += [(one, True) for one in context.set_aside if one.source == POSTED]
    return [(audit.id, _use(index, decision.id, audit, is_aside)) for audit, is_aside in found]


class SubmittedNews:
    """The posted news of a run's folder; for several threads."""

    def __init__(self, folder: Path, clock: Clock | None = None) -> None:
        self._folder, self._clock = folder, clock or SystemClock()
        self._file = PostedNewsFile(folder)
        self._admissions = _Admissions(folder)

    def submit(
        self, items: Sequence[SubmittedItem], by: str, token: RequestToken
    ) -> tuple[list[SubmittedBody], bool]:
        """Write items down for the run, once each; with it whether the run goes on.

        Raises: InvalidInput where an id is that of another item, IntegrityError, DependencyUnavailable.
        """
        parser = RowParser(SourceSpec(POSTED, kind="news", stamp="arrival"), "")
        answers: list[SubmittedBody] = []
        good: list[PostedNews] = []
        for place, item in enumerate(items):
            name = item.id or f"{POSTED}-{token.at_ns}-{token.text}-{place}"
            made = parser.parse(_row(item, name), 0, "", token.at_ns)
            if isinstance(made, News):
                stated_ns = made.event_time_ns if item.published_at else 0
                news = msgspec.structs.replace(made, available_at_ns=0, event_time_ns=stated_ns)
                good.append(PostedNews(0, news, by, token.at_ns))
                answers.append(SubmittedBody(name, "accepted"))
            else:
                reason, detail = (made.reason, made.detail) if isinstance(made, QuarantinedRow) else ("", "")
                answers.append(SubmittedBody(name, "refused", reason, detail))
        known: set[str] = set()
        if good:
            # What this very request wrote before its service was killed is accepted: it is asked under the same token.
            known = {name for name, one in self._file.read().items() if one.at_ns != token.at_ns}
            self._file.append(good, lambda: len(self._admissions.read()))
        answers = [
            msgspec.structs.replace(one, status="known")
            if one.id in known and one.status == "accepted"
            else one
            for one in answers
        ]
        return answers, is_live(self._folder)

    def item(self, name: str, uses: Sequence[ItemUse]) -> PostedItemBody | None:
        """One of them; None where there is none. `uses` are the decisions that are known to have known of it."""
        posted = self._file.read().get(name)
        if posted is None:
            return None
        held = {one.held.item.row: one for one in list_quarantined(self._folder, POSTED)}
        return _body(posted, self._admissions.read(), held, uses)

    def page(
        self, before: int | None, limit: int, uses: Mapping[str, Sequence[ItemUse]]
    ) -> tuple[list[PostedItemBody], int | None]:
        """The newest before a number, and the number to go on from; None where there are no more."""
        posted = list(self._file.read().values())
        stop = len(posted) if before is None else min(max(before - 1, 0), len(posted))
        start = max(stop - limit, 0)
        held = {one.held.item.row: one for one in list_quarantined(self._folder, POSTED)}
        entered = self._admissions.read()
        page = [_body(one, entered, held, uses.get(one.item.id, ())) for one in reversed(posted[start:stop])]
        return page, start + 1 if start else None


def is_live(folder: Path) -> bool:
    """Whether a run goes on in a folder."""
    return (folder / DATABASE).exists() and is_running(folder)


class _Admissions:
    """Where posted items entered, by number; read again where the file has grown."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._size = -1
        self._entered: dict[int, AppliedAction] = {}

    def read(self) -> dict[int, AppliedAction]:
        try:
            size = (self._folder / ADMITTED_FILE).stat().st_size
        except OSError:
            return {}
        if size != self._size:
            _, applied = read_admissions(self._folder)
            self._entered = {
                one.release.number: one for one in applied if isinstance(one.release, PostedEntry)
            }
            self._size = size
        return self._entered


def _row(item: SubmittedItem, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"headline": item.headline, "id": name, "symbols": item.symbols}
    for key in ("body", "url", "publisher", "residency", "corrects"):
        if value := getattr(item, key):
            row[key] = value
    if item.retracts:
        row["retracts"] = True
    if item.published_at:
        row["ts"] = item.published_at
    return row


def _body(
    posted: PostedNews,
    entered: Mapping[int, AppliedAction],
    held: Mapping[int, QuarantinedItem],
    uses: Sequence[ItemUse],
) -> PostedItemBody:
    place, aside = entered.get(posted.number), held.get(posted.number)
    status, detail = _status(place, aside, uses)
    headline, phrases = "", list[KeyPhrase]()
    if status == "used":
        event = next((one.event for one in reversed(uses) if one.event), "")
        headline = deobfuscate(posted.item.headline, MAX_HEADLINE_CHARS).text
        phrases = phrases_of(headline, event, next(iter(posted.item.symbols), ""))
    return PostedItemBody(
        id=posted.item.id,
        number=posted.number,
        status=status,
        headline=posted.item.headline,
        body=posted.item.body,
        symbols=list(posted.item.symbols),
        publisher=posted.item.publisher,
        url=posted.item.url,
        posted_by=posted.by,
        posted_at=format_ns(posted.at_ns),
        entered_at=None if place is None else format_ns(place.at_ns),
        findings=[] if aside is None else list(aside.held.screened.findings),
        quarantine_number=None if aside is None else aside.held.number,
        decisions=list(uses)[-MAX_USES:],
        detail=detail,
        clean_headline=headline,
        phrases=phrases,
    )


def _status(
    place: AppliedAction | None, aside: QuarantinedItem | None, uses: Sequence[ItemUse]
) -> tuple[str, str]:
    if place is None:
        return "waiting", "the run takes it with its next event; a run that has ended when it resumes"
    if aside is not None:
        if aside.status == "held":
            number = aside.held.number
            return "quarantined", f"a person may let it out: POST /v1/quarantine/{number}/admit"
        return "released", "a person has let it out"
    if any(not one.is_set_aside for one in uses):
        return "used", ""
    repeated = next((one.first_report for one in uses if one.first_report), "")
    if repeated:
        return "deduplicated", f"item {repeated} reported the same before"
    return "entered", "no decision of those that were read has known of it yet"


def _use(index: int, decision: str, audit: NewsItemAudit, is_set_aside: bool) -> ItemUse:
    return ItemUse(
        index=index,
        decision=decision,
        is_set_aside=is_set_aside,
        verdict=audit.verdict.value,
        trust=audit.trust,
        reasons=list(audit.reasons),
        first_report=audit.first_report,
        route=audit.route.value,
        why=audit.why,
        event="" if audit.reading is UNSET else audit.reading.event,
        reading="" if audit.reading is UNSET else reading_words(audit.reading),
    )
