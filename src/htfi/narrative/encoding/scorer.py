"""Scores screened items: encoded together, judged by heads, linked to symbols, compared with earlier items."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.news import TRUST_STEPS, NewsScores, ScreenedItem
from htfi.narrative.answer import CAUSES
from htfi.narrative.encoding.config import MAX_RECENT, RECENT_HALF_LIFE_NS
from htfi.narrative.encoding.heads import Head, Heads
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.encoding.novelty import NoveltyIndex
from htfi.narrative.ports import TextEncoder

MIN_HEADLINE_WORDS = 5  # of a headline that is read without its body

LabelShares = Mapping[str, NDArray[np.float64]]  # by head, [n, labels]


class NewsScorer:
    """Scores in the order of the items; batching changes no bit."""

    def __init__(self, encoder: TextEncoder | None, heads: Heads | None, linker: EntityLinker) -> None:
        self._encoder, self._heads, self._linker = encoder, heads, linker
        size = 1 if encoder is None else encoder.size
        self._novelty = NoveltyIndex(size, MAX_RECENT, RECENT_HALF_LIFE_NS)
        self.version = "" if encoder is None else encoder.version
        if encoder is not None and heads is not None:
            self.version += f"+heads@{heads.digest[:12]}"

    def score(self, items: Sequence[ScreenedItem]) -> list[NewsScores]:
        """One result per item, in order; each item then counts for novelty. Raises: DependencyUnavailable."""
        links = [self._linker.link(f"{item.item.headline}\n{item.item.body}") for item in items]
        if self._encoder is None or not items:
            return [
                _scores_without_encoder(item, symbols) for item, symbols in zip(items, links, strict=True)
            ]
        texts = [scored_text(item) for item in items]
        points, states = self._encoder.read(texts)
        probabilities: LabelShares = {} if self._heads is None else self._heads.score(points, states, texts)
        rows: list[NewsScores] = []
        for place, (item, symbols) in enumerate(zip(items, links, strict=True)):
            about = (*item.item.symbols, *symbols)
            novelty = self._novelty.measure(points[place], about, item.item.available_at_ns)
            rows.append(self._scores(probabilities, place, novelty, symbols))
        return rows

    def _scores(
        self, probabilities: LabelShares, place: int, novelty: int, symbols: tuple[str, ...]
    ) -> NewsScores:
        heads: Mapping[str, Head] = {} if self._heads is None else self._heads.heads
        event, confidence = CAUSES[0], 0.0
        if "event" in probabilities:
            shares = probabilities["event"][place]
            best = int(shares.argmax())
            event, confidence = heads["event"].labels[best], _in_thousandths(shares[best])
        return NewsScores(
            sentiment=_signed_share(heads, probabilities, "sentiment", "positive", "negative", place),
            stance=_signed_share(heads, probabilities, "stance", "hawkish", "dovish", place),
            event=event,
            event_confidence=confidence,
            relevance=_in_thousandths(_share(heads, probabilities, "relevance", "relevant", place, 0.5)),
            novelty=novelty / TRUST_STEPS,
            symbols=symbols,
            encoder=self.version,
        )

    def state(self) -> dict[str, Any]:
        """What counts for novelty, as plain values."""
        return {"encoder": self.version, "novelty": self._novelty.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`; what another encoder read cannot be compared and is forgotten. Raises:
        InvalidInput.
        """
        if state.get("encoder") == self.version:
            self._novelty.restore(state["novelty"])


def scored_text(item: ScreenedItem) -> str:
    """The text that the encoder reads of an item: its headline, and its body after a headline of few words.

    A body takes five times as long to read as a headline and mostly repeats it at length.
    """
    headline, body = item.item.headline, item.item.body
    if not body or headline.count(" ") + 1 >= MIN_HEADLINE_WORDS:
        return headline
    return f"{headline}\n{body}"


def _scores_without_encoder(item: ScreenedItem, symbols: tuple[str, ...]) -> NewsScores:
    """Without an encoder: neither good nor bad, perhaps relevant, new unless repeated."""
    return NewsScores(0.0, 0.0, CAUSES[0], 0.0, 0.5, round(1.0 / max(item.num_alike, 1), 3), symbols)


def _signed_share(
    heads: Mapping[str, Head], probabilities: LabelShares, head: str, up: str, down: str, place: int
) -> float:
    """P(up) − P(down)."""
    return _in_thousandths(
        _share(heads, probabilities, head, up, place, 0.0)
        - _share(heads, probabilities, head, down, place, 0.0)
    )


def _share(
    heads: Mapping[str, Head], probabilities: LabelShares, head: str, label: str, place: int, without: float
) -> float:
    return (
        float(probabilities[head][place][heads[head].labels.index(label)])
        if head in probabilities
        else without
    )


def _in_thousandths(value: float) -> float:
    return round(float(value) * TRUST_STEPS) / TRUST_STEPS
