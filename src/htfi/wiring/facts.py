"""Opens the reader of facts: the heads of facts on the shipped encoder, and the names of a run's symbols."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from htfi import models
from htfi.narrative.config import EncodingConfig
from htfi.narrative.encoding.heads import Head, cue_ids
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.extraction import FactScores
from htfi.narrative.facts.fact_reader import FactReader
from htfi.narrative.facts.network import FactHeads
from htfi.narrative.ports import TextEncoder
from htfi.wiring.encoder import SentenceEncoder, open_heads, shipped_encoder

_SENTIMENT_LABELS = ("positive", "neutral", "negative")  # in the order of a tone: up, neutral, down


class ShippedFactNetwork:
    """The heads of facts on the shipped encoder, behind `extraction.FactNetwork`; loaded at the first text.

    The tone is the mean of the heads of facts and of the head of sentiment, which was trained on other lines: on the
    labelled sets each is wrong where the other is not.
    """

    def __init__(self, encoder: SentenceEncoder, shared: TextEncoder | None = None) -> None:
        """`shared` is what others ask for the same texts too; `encoder` is behind it."""
        self._encoder = encoder
        self._shared: TextEncoder = shared or encoder
        self.version = (
            f"{encoder.version.partition(':')[0]}+facts@{models.FACT_HEADS_DIGEST[:12]}"
            f"+heads@{models.DIGESTS[models.HEADS][:12]}"
        )

    def read(self, texts: Sequence[str]) -> list[FactScores]:
        """One per text, in order. Raises: IntegrityError, DependencyUnavailable."""
        heads, sentiment = self._heads, self._sentiment
        points, states = self._shared.read(texts)
        moods = sentiment.probabilities(points, states, [cue_ids(text) for text in texts])
        moods = moods[:, [sentiment.labels.index(label) for label in _SENTIMENT_LABELS]]
        found: list[FactScores] = []
        for text, state, mood in zip(texts, states, moods, strict=True):
            scores = heads.read(state, self._encoder.spans(text))
            found.append(scores._replace(tone=np.mean([scores.tone, mood], axis=0)))
        return found

    @cached_property
    def _heads(self) -> FactHeads:
        """Held to their digest. Raises: IntegrityError, InvalidInput."""
        return FactHeads.load(models.FACTS, models.FACT_HEADS_DIGEST)

    @cached_property
    def _sentiment(self) -> Head:
        """Held to its digest. Raises: IntegrityError, InvalidInput."""
        return open_heads().heads["sentiment"]


def open_fact_reader(config: EncodingConfig, names: Mapping[str, str] | None = None) -> FactReader:
    """A reader of facts alone, as for `htfi news`; `names` are what symbols are called. Raises: IntegrityError."""
    return fact_reader(None if config.model == "none" else shipped_encoder(config), None, names)


def fact_reader(
    encoder: SentenceEncoder | None, shared: TextEncoder | None, names: Mapping[str, str] | None = None
) -> FactReader:
    """The reader of facts on an encoder that is open; without one, code alone reads."""
    linker = EntityLinker({symbol: [name] for symbol, name in (names or {}).items() if name})
    return FactReader(None if encoder is None else ShippedFactNetwork(encoder, shared), linker)
