"""What an item of news is understood to say: its screening, its facts, and what they mean for the asset asked about.

`htfi news` shows it, and the same from Python.
"""

from collections.abc import Sequence

import msgspec

from htfi.domain.events import News
from htfi.domain.news import ScreenedItem, Screening
from htfi.narrative.facts.assets import AssetKind
from htfi.narrative.facts.fact_reader import FactReader
from htfi.narrative.facts.reading import DEFAULT_CONFIG, AssetReading, ReadingConfig, Silence, read_for
from htfi.narrative.facts.record import BodyStance, EventGroup, EventKind, Modality, NewsFacts, PartyRole
from htfi.narrative.facts.statements.compared import ComparedDocument, ComparedDocuments
from htfi.narrative.facts.surprises import Verdict
from htfi.narrative.sanitising.sanitiser import Sanitiser


class NewsText(msgspec.Struct, frozen=True, forbid_unknown_fields=False):
    """One item as a person or a file gives it; only `text` is needed. `symbol` and `name` say whom is asked about."""

    text: str
    body: str = ""
    symbol: str = ""
    name: str = ""
    source: str = ""
    published_at: str = ""


class Understanding(msgspec.Struct, frozen=True):
    """One item understood. `reading` is for the asset asked about, or for what the item is mainly about; `document` is
    what changed in a central bank's document since the one of its series before it.
    """

    item: NewsText
    screened: ScreenedItem
    facts: NewsFacts
    reading: AssetReading
    words: str
    document: ComparedDocument | None = None

    @property
    def is_held(self) -> bool:
        """Whether it stands in quarantine."""
        return self.screened.verdict is Screening.QUARANTINE

    @property
    def speaks(self) -> bool:
        """Whether it states a direction; what an item in quarantine says does not count."""
        return self.reading.silence is Silence.NONE and not self.is_held

    @property
    def why_silent(self) -> str:
        """Why it states nothing; '' where it does."""
        return "held in quarantine" if self.is_held else self.reading.silence.value


def understand(
    items: Sequence[NewsText],
    reader: FactReader,
    config: ReadingConfig = DEFAULT_CONFIG,
    documents: ComparedDocuments | None = None,
) -> list[Understanding]:
    """Screen and read items, each by itself: none depends on the others. With `documents` each document of a central
    bank is also compared with the last one before it, in their order. Raises: DependencyUnavailable.
    """
    screened = [_screen(item) for item in items]
    facts = reader.read(
        [one.item.headline for one in screened],
        [one.item.body for one in screened],
        asked=[(item.symbol, item.name) for item in items],
    )
    found: list[Understanding] = []
    for item, one, read in zip(items, screened, facts, strict=True):
        reading = read_for(read, item.symbol, item.name, config=config)
        compared = None if documents is None else _compared(one, documents)
        found.append(Understanding(item, one, read, reading, describe(read, reading), compared))
    return found


def _compared(screened: ScreenedItem, documents: ComparedDocuments) -> ComparedDocument | None:
    if screened.verdict is not Screening.PASS:
        return None
    return documents.add(screened.item, is_official=Sanitiser().is_official(screened.item.source))


def _screen(item: NewsText) -> ScreenedItem:
    """The item alone before a sanitiser without history."""
    symbols = (item.symbol,) if item.symbol else ()
    source = item.source or "given"
    news = News(0, 0, source, 1, "item", item.text, symbols, item.body)
    return Sanitiser().screen(news)


_EVENT_WORDS = {
    EventKind.SALES_UPDATE: "sales figures",
    EventKind.TRIAL_RESULT: "a trial result",
    EventKind.RATE_DECISION: "a decision on interest rates",
    EventKind.POLICY_GUIDANCE: "words on monetary policy",
    EventKind.CREDIT_RATING: "a credit rating",
    EventKind.MARKET_MOVE: "a move of prices",
    EventKind.STAKE: "a holding",
}
_MODALITY_WORDS = {
    Modality.WILL: ", planned",
    Modality.MAY: ", possible",
    Modality.DENIES: ", denied",
    Modality.RUMOUR: ", unconfirmed",
}


def describe(facts: NewsFacts, reading: AssetReading) -> str:
    """One line for a person: what happened, and what it means for the asset, or why it says nothing."""
    what = _EVENT_WORDS.get(facts.event, facts.event.value.replace("_", " "))
    what += _MODALITY_WORDS.get(facts.modality, "")
    comparisons = [
        f"{one.measure} {one.verdict.value if one.verdict is Verdict.IN_LINE else f'{one.verdict.value} expectations'}"
        for one in facts.surprises
        if one.verdict is not Verdict.UNCLEAR
    ]
    if comparisons:
        what += f" ({', '.join(comparisons)})"
    if facts.body is not None and facts.body.stance is BodyStance.DISAGREES:
        what += ", the body says otherwise"
    whom = reading.symbol or "its subject"
    if reading.silence is not Silence.NONE:
        return f"{what}: says nothing about {whom} ({reading.silence.value})"
    role = f" as {reading.role.value}" if reading.role not in (None, PartyRole.SUBJECT) else ""
    side = "up" if reading.direction > 0 else "down"
    verb = "is good" if reading.direction > 0 else "is bad"
    if reading.asset is AssetKind.EQUITY and facts.event.group is EventGroup.COMPANY:
        return f"{what}: {verb} for {whom}{role}, {reading.size_sigmas:.1f}σ"
    return f"{what}: moves {whom}{role} {side}, {reading.size_sigmas:.1f}σ"
