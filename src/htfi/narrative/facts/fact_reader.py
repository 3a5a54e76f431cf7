"""Reads texts into facts: the tuned encoder's heads, the heads for sentiment beside them, and code."""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from htfi.narrative.encoding.heads import Heads
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.extraction import MAX_TEXT_CHARS, FactNetwork, FactScores, extract_facts
from htfi.narrative.facts.record import NewsFacts
from htfi.narrative.ports import TextEncoder

_HEAD_SHARE = 0.3  # of the tone that the heads for sentiment give


class FactReader:
    """Texts to facts, in order. The same text gives the same facts, whatever the batch."""

    def __init__(
        self,
        network: FactNetwork | None,
        linker: EntityLinker,
        encoder: TextEncoder | None = None,
        heads: Heads | None = None,
    ) -> None:
        """`encoder` and `heads` give a second opinion of the tone; without a network, code alone reads."""
        self._network, self._linker = network, linker
        self._encoder, self._heads = encoder, heads
        parts = [] if network is None else [network.version]
        if encoder is not None and heads is not None:
            parts.append(f"{encoder.version}+heads@{heads.digest[:12]}")
        self.version = "; ".join(parts)

    def read(self, texts: Sequence[str], bodies: Sequence[str] = ()) -> list[NewsFacts]:
        """One record per headline, with the body below it where there is one. Raises: DependencyUnavailable."""
        texts = [text[:MAX_TEXT_CHARS] for text in texts]
        bodies = bodies or [""] * len(texts)
        if self._network is None or not texts:
            return [
                extract_facts(text, None, self._linker, body=body)
                for text, body in zip(texts, bodies, strict=True)
            ]
        scores = self._with_head_tone(texts, self._network.read(texts))
        return [
            extract_facts(text, one, self._linker, self.version, body)
            for text, one, body in zip(texts, scores, bodies, strict=True)
        ]

    def _with_head_tone(self, texts: Sequence[str], scores: list[FactScores]) -> list[FactScores]:
        if self._encoder is None or self._heads is None or "sentiment" not in self._heads.heads:
            return scores
        labels = self._heads.heads["sentiment"].labels
        order = [labels.index(label) for label in ("positive", "neutral", "negative")]
        points, states = self._encoder.read(texts)
        tones = self._heads.score(points, states, texts)["sentiment"][:, order]
        return [
            one._replace(tone=_HEAD_SHARE * np.asarray(tone) + (1.0 - _HEAD_SHARE) * one.tone)
            for one, tone in zip(scores, tones, strict=True)
        ]


def without_text(facts: NewsFacts) -> NewsFacts:
    """The facts without their text, for keeping."""
    return replace(facts, text="")
