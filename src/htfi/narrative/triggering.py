"""Says whether an item matters to a symbol so much that it is answered before the next bar closes. Pure.

The main path asks when an item comes, an auditor asks again by what the decision records of it.
"""

from htfi.domain.news import ItemReading, NewsScores, Route, Screening
from htfi.narrative.answer import CAUSES
from htfi.narrative.config import MIN_TRIGGER_NOVELTY, MIN_TRIGGER_RELEVANCE, TriggersConfig
from htfi.narrative.recent_news import NewsRecord

MIN_TRIGGER_VOLATILITY = 1.25  # times the usual day's move, from which an item without a direction matters
VERSION = "triggers/1"  # what matters, and how it is recorded
_NO_EVENT = CAUSES[0]
_POLICY = "central_bank"  # the kind of event that a monetary stance means something of


def reasons_to_decide(
    record: NewsRecord, symbol: str, reading: ItemReading | None, config: TriggersConfig
) -> tuple[str, ...]:
    """Why an item is worth a decision of its own on a symbol, each in a few words; empty: it waits for the next bar.

    `reading` is what its facts mean for the symbol; an item on the whole market matters by it alone.
    """
    symbols = record.screened.item.symbols
    if record.most is Route.TEMPLATE or (symbols and symbol not in symbols):
        return ()
    verdict, is_tagged = record.screened.verdict, bool(symbols)
    return reasons_of(verdict, record.first_report, record.scores, reading, config, is_tagged=is_tagged)


def reasons_of(
    verdict: Screening,
    first_report: str,
    scores: NewsScores | None,
    reading: ItemReading | None,
    config: TriggersConfig,
    *,
    is_tagged: bool,
) -> tuple[str, ...]:
    """The same of an item by what a decision records of it."""
    if verdict is not Screening.PASS or first_report or scores is None or not scores.encoder:
        return ()
    if scores.novelty < MIN_TRIGGER_NOVELTY:
        return ()
    if reading is not None:
        return _reasons_of_reading(reading)
    if not is_tagged or scores.relevance < MIN_TRIGGER_RELEVANCE:
        return ()
    reasons: list[str] = []
    if scores.event != _NO_EVENT and scores.event_confidence >= config.min_event_confidence:
        reasons.append(f"event {scores.event} {scores.event_confidence:.2f}")
    if abs(scores.sentiment) >= config.min_sentiment:
        reasons.append(f"sentiment {scores.sentiment:+.2f}")
    if scores.event == _POLICY and abs(scores.stance) >= config.min_sentiment:
        reasons.append(f"stance {scores.stance:+.2f}")
    return tuple(reasons)


def _reasons_of_reading(reading: ItemReading) -> tuple[str, ...]:
    if reading.relevance < MIN_TRIGGER_RELEVANCE:
        return ()
    kind = reading.event.replace("_", " ")
    if reading.direction:
        return (f"{kind} {reading.direction * reading.size_sigmas:+.1f} sigmas",)
    if reading.volatility >= MIN_TRIGGER_VOLATILITY:
        return (f"{kind}, volatility {reading.volatility:.2f}",)
    return ()
