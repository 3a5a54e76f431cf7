"""Says whether an item matters to a symbol so much that it is answered before the next bar closes. Pure.

The main path asks when an item comes, an auditor asks again by what the decision records of it.
"""

from htfi.domain.news import NewsScores, Route, Screening
from htfi.narrative.answer import CAUSES
from htfi.narrative.config import MIN_TRIGGER_NOVELTY, MIN_TRIGGER_RELEVANCE, TriggersConfig
from htfi.narrative.recent_news import NewsRecord

VERSION = "triggers/1"  # what matters, and how it is recorded
_NO_EVENT = CAUSES[0]
_POLICY = "central_bank"  # the kind of event that a monetary stance means something of


def reasons_to_decide(record: NewsRecord, symbol: str, config: TriggersConfig) -> tuple[str, ...]:
    """Why an item is worth a decision of its own on a symbol, each in a few words; empty: it waits for the next bar."""
    if symbol not in record.screened.item.symbols or record.most is Route.TEMPLATE:
        return ()
    return reasons_of(record.screened.verdict, record.first_report, record.scores, config)


def reasons_of(
    verdict: Screening, first_report: str, scores: NewsScores | None, config: TriggersConfig
) -> tuple[str, ...]:
    """The same of an item that is about the symbol, by its verdict and scores."""
    if verdict is not Screening.PASS or first_report or scores is None or not scores.encoder:
        return ()
    if scores.relevance < MIN_TRIGGER_RELEVANCE or scores.novelty < MIN_TRIGGER_NOVELTY:
        return ()
    reasons: list[str] = []
    if scores.event != _NO_EVENT and scores.event_confidence >= config.min_event_confidence:
        reasons.append(f"event {scores.event} {scores.event_confidence:.2f}")
    if abs(scores.sentiment) >= config.min_sentiment:
        reasons.append(f"sentiment {scores.sentiment:+.2f}")
    if scores.event == _POLICY and abs(scores.stance) >= config.min_sentiment:
        reasons.append(f"stance {scores.stance:+.2f}")
    return tuple(reasons)
