"""What a selection of news says and may do: the parts of a view, who read them, what a decision records of them."""

from htfi.domain.decision import FidelityPlan
from htfi.domain.news import NewsContext, NewsItemAudit, ReadingBudget
from htfi.domain.news_view import ViewPart
from htfi.narrative.config import NarrativeConfig, RoutingConfig
from htfi.narrative.facts.statements.compared import ComparedDocuments
from htfi.narrative.held_news import HeldNews
from htfi.narrative.influence import InfluenceLimits, limits_of
from htfi.narrative.merging import READER_SEPARATOR
from htfi.narrative.ports import ItemScorer
from htfi.narrative.question import MAX_ITEMS
from htfi.narrative.readers import facts_reader, is_part, part_from_reading, part_from_scores, part_reader
from htfi.narrative.recent_news import NewsRecord, NewsSelection, item_audit
from htfi.narrative.routing import UNREAD
from htfi.narrative.sanitising.sanitiser import Sanitiser


class SelectionContents:
    """Reads selections of the news that is held; changes nothing."""

    def __init__(
        self,
        config: NarrativeConfig,
        routing: RoutingConfig,
        sanitiser: Sanitiser,
        held: HeldNews,
        documents: ComparedDocuments,
        scorer: ItemScorer,
    ) -> None:
        self._config, self._routing, self._sanitiser = config, routing, sanitiser
        self._held, self._documents, self._scorer = held, documents, scorer

    def item_parts(self, gathered: NewsSelection, as_of_ns: int, bar_ns: int) -> list[ViewPart]:
        """What the facts of each item say; where none were read, the encoder's scores of items that no model reads."""
        if gathered.readings:
            considered = (*self._held.records_of(gathered.items[:MAX_ITEMS]), *gathered.encoder_only)
            return [
                part_from_reading(
                    note.screened.item.id,
                    note.screened.item.available_at_ns,
                    note.screened.trust,
                    reading,
                    as_of_ns,
                    bar_ns,
                    self._config,
                )
                for note in considered
                if (reading := gathered.readings.get(note.screened.item.id)) is not None and is_part(reading)
            ]
        return [
            part_from_scores(
                note.screened.item.id,
                note.screened.item.available_at_ns,
                note.screened.trust,
                note.scores,
                self._config,
            )
            for note in gathered.encoder_only
            if _has_part(note)
        ]

    def read_by_encoder(self, gathered: NewsSelection) -> NewsSelection | None:
        """The same news, none of which a model reads; None where the encoder scored not all of it."""
        read = self._held.records_of(gathered.items[:MAX_ITEMS])
        if not all(note.scores is not None and note.scores.encoder for note in read):
            return None
        return gathered._replace(items=(), encoder_only=(*read, *gathered.encoder_only))

    def narrator(self, reader: str, gathered: NewsSelection) -> str:
        """Who a view by this reader is from, with what reads the facts, or the encoder that reads other items."""
        if gathered.readings:
            spoken = [one for one in gathered.readings.values() if is_part(one) and one.silence not in UNREAD]
            others = dict.fromkeys(map(facts_reader, spoken))
        else:
            scored = (note.scores for note in gathered.encoder_only if _has_part(note))
            others = dict.fromkeys(map(part_reader, scored))
        return READER_SEPARATOR.join((reader, *others))

    @property
    def encoder_reader(self) -> str:
        """The reader of the encoder's own views."""
        return f"encoder {self._scorer.version}"

    def encoder_opinion(self, gathered: NewsSelection) -> tuple[str, float] | None:
        """Who the encoder's readings of all the news are from, and what they may move; None where they say nothing."""
        read = self._held.records_of(gathered.items[:MAX_ITEMS])
        notes = [note for note in (*read, *gathered.encoder_only) if _has_part(note)]
        if not notes or not all(note.scores is not None and note.scores.encoder for note in read):
            return None
        limit = max(self._sanitiser.max_influence(note.screened) for note in notes)
        return part_reader(notes[0].scores), limit

    def news_context(
        self, gathered: NewsSelection, plan: FidelityPlan, means: ReadingBudget | None
    ) -> NewsContext | None:
        """What a decision records about the news: who was to read each item, and why."""
        if means is None:
            return None
        considered = (*self._held.records_of(gathered.items[:MAX_ITEMS]), *gathered.encoder_only)
        return NewsContext(
            considered=tuple(self._item_audit(note, plan, means, gathered) for note in considered),
            set_aside=tuple(self._item_audit(note, plan, means, gathered) for note in gathered.set_aside),
            reading_budget=means,
            suspicion=gathered.suspicion,
            reset_by=gathered.suspicion_reset,
        )

    def _item_audit(
        self, note: NewsRecord, plan: FidelityPlan, means: ReadingBudget, gathered: NewsSelection
    ) -> NewsItemAudit:
        reading = gathered.readings.get(note.screened.item.id)
        limit = self._sanitiser.max_influence(note.screened)
        compared = self._documents.get(note.screened.item.id)
        lines = () if compared is None else compared.lines
        return item_audit(note, plan, means, self._routing, limit, reading, lines)

    def influence_limits(self, gathered: NewsSelection) -> InfluenceLimits:
        """How far this news may move a forecast."""
        read = self._held.records_of(gathered.items[:MAX_ITEMS])
        by_item = {
            note.screened.item.id: self._sanitiser.max_influence(note.screened)
            for note in (*read, *gathered.encoder_only)
        }
        return limits_of(by_item, [note.screened.item.id for note in read])


def _has_part(note: NewsRecord) -> bool:
    """Whether the encoder's reading of an item says anything."""
    return note.scores is not None and note.scores.relevance * note.scores.novelty > 0.0
