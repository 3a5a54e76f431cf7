"""Scores screened items: encoded together, judged, linked, compared with what was read. The news desk calls it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.news import TRUST_STEPS, Scores, Screened
from htfi.narrative.answer import CAUSES
from htfi.narrative.encoding.config import EncodingConfig
from htfi.narrative.encoding.heads import Head, Heads
from htfi.narrative.encoding.linking import Linker
from htfi.narrative.encoding.novelty import Novelty
from htfi.narrative.ports import TextEncoder

ENOUGH_WORDS = 5  # of a headline that stands for its item

Shares = Mapping[str, NDArray[np.float64]]  # by head, [n, labels]


class Scorer:
    """Scores in the order of the items; how they come in batches changes no bit."""

    def __init__(
        self, config: EncodingConfig, encoder: TextEncoder | None, heads: Heads | None, linker: Linker
    ) -> None:
        self._encoder, self._heads, self._linker = encoder, heads, linker
        size = 1 if encoder is None else encoder.size
        self._novelty = Novelty(size, config.max_recent, config.recent_half_life_ns)
        self.version = "" if encoder is None else encoder.version
        if encoder is not None and heads is not None:
            self.version += f"+heads@{heads.digest[:12]}"

    def score(self, items: Sequence[Screened]) -> list[Scores]:
        """One for each item, in order; each then counts as read. Raises: DependencyUnavailable."""
        links = [self._linker.link(f"{item.item.headline}\n{item.item.body}") for item in items]
        if self._encoder is None or not items:
            return [_unencoded(item, symbols) for item, symbols in zip(items, links, strict=True)]
        texts = [shown_text(item) for item in items]
        points, states = self._encoder.read(texts)
        told: Shares = {} if self._heads is None else self._heads.score(points, states, texts)
        rows: list[Scores] = []
        for place, (item, symbols) in enumerate(zip(items, links, strict=True)):
            about = (*item.item.symbols, *symbols)
            novelty = self._novelty.judge(points[place], about, item.item.available_at_ns)
            rows.append(self._scores(told, place, novelty, symbols))
        return rows

    def _scores(self, told: Shares, place: int, novelty: int, symbols: tuple[str, ...]) -> Scores:
        heads: Mapping[str, Head] = {} if self._heads is None else self._heads.heads
        event, confidence = CAUSES[0], 0.0
        if "event" in told:
            shares = told["event"][place]
            best = int(shares.argmax())
            event, confidence = heads["event"].labels[best], _rounded(shares[best])
        return Scores(
            sentiment=_leaning(heads, told, "sentiment", "positive", "negative", place),
            stance=_leaning(heads, told, "stance", "hawkish", "dovish", place),
            event=event,
            event_confidence=confidence,
            relevance=_rounded(_share(heads, told, "relevance", "relevant", place, 0.5)),
            novelty=novelty / TRUST_STEPS,
            symbols=symbols,
            encoder=self.version,
        )

    def state(self) -> dict[str, Any]:
        """What was read, as plain values."""
        return {"encoder": self.version, "novelty": self._novelty.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`; what another encoder read cannot be compared and is forgotten. Raises: InvalidInput."""
        if state.get("encoder") == self.version:
            self._novelty.restore(state["novelty"])


def shown_text(item: Screened) -> str:
    """What the encoder reads of an item: its headline, and its body after it where the headline says little.

    A lead takes five times as long to read as a headline and mostly says the same at length.
    """
    headline, body = item.item.headline, item.item.body
    if not body or headline.count(" ") + 1 >= ENOUGH_WORDS:
        return headline
    return f"{headline}\n{body}"


def _unencoded(item: Screened, symbols: tuple[str, ...]) -> Scores:
    """Nobody has judged it: neither good nor bad, perhaps of interest, new unless it was told before."""
    return Scores(0.0, 0.0, CAUSES[0], 0.0, 0.5, round(1.0 / max(item.num_alike, 1), 3), symbols)


def _leaning(heads: Mapping[str, Head], told: Shares, head: str, up: str, down: str, place: int) -> float:
    """P(up) − P(down)."""
    return _rounded(_share(heads, told, head, up, place, 0.0) - _share(heads, told, head, down, place, 0.0))


def _share(
    heads: Mapping[str, Head], told: Shares, head: str, label: str, place: int, without: float
) -> float:
    return float(told[head][place][heads[head].labels.index(label)]) if head in told else without


def _rounded(value: float) -> float:
    return round(float(value) * TRUST_STEPS) / TRUST_STEPS
