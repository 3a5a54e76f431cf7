"""The encoder's reading of one item, from its scores alone: no model is run. The desk makes it of what none reads."""

from htfi.domain.decision import Part
from htfi.domain.news import Scores
from htfi.narrative.config import NarrativeConfig

LEAST_SENTIMENT = 0.2  # below it an item has no direction
MOST_CONFIDENCE = 0.5  # an encoder sees what is said, not what it means for a price
WIDENING = 0.25  # of the band, by news that is wholly relevant and new
_DECIMALS = 4


def read_scores(
    name: str, available_at_ns: int, trust: float, scores: Scores | None, config: NarrativeConfig
) -> Part:
    """A direction where an item is good or bad for what it is about; a wider band where it is relevant and new.

    `name` is the item's id; `trust` 0–1 is how much of its effect counts.
    """
    sentiment = scores.sentiment if scores is not None and abs(scores.sentiment) >= LEAST_SENTIMENT else 0.0
    relevance = scores.relevance if scores is not None else 0.0
    novelty = scores.novelty if scores is not None else 0.0
    return Part(
        reader=f"encoder {scores.encoder}" if scores is not None else "encoder",
        direction=float((sentiment > 0.0) - (sentiment < 0.0)),
        size_sigmas=round(abs(sentiment), _DECIMALS),
        volatility_multiplier=round(1.0 + WIDENING * relevance * novelty, _DECIMALS),
        confidence=round(MOST_CONFIDENCE * relevance * novelty, _DECIMALS),
        cited=(name,),
        as_of_ns=available_at_ns,
        half_life_ns=config.half_life_ns,
        trust=trust,
        cause=scores.event if scores is not None else "",
    )
