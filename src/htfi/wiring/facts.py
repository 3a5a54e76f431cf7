"""Opens the reader of facts: the heads of facts on the shipped encoder, and the names of a run's symbols."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from htfi import models
from htfi.narrative.config import EncodingConfig
from htfi.narrative.encoding.heads import Head, Heads, cue_ids
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.extraction import FactScores, extract_facts
from htfi.narrative.facts.fact_reader import FactReader, encode_facts
from htfi.narrative.facts.network import FactHeads
from htfi.narrative.ports import TextEmbeddings
from htfi.wiring.encoder import open_heads, shipped_encoder
from htfi.wiring.sentence_encoder import SentenceEncoder

_SENTIMENT_LABELS = ("positive", "neutral", "negative")  # in the order of a tone: up, neutral, down


class ShippedFactNetwork:
    """The heads of facts on the shipped encoder, behind `extraction.FactNetwork`; loaded at the first text.

    The tone is the mean of the heads of facts and of the head of sentiment, which was trained on other lines: on the
    labelled sets each is wrong where the other is not. `shipped` are the heads of news where they are read already.
    """

    def __init__(self, encoder: SentenceEncoder, shipped: Heads | None = None) -> None:
        self._encoder, self._shipped = encoder, shipped
        self.version = (
            f"{_source(encoder)}+facts@{models.FACT_HEADS_DIGEST[:12]}"
            f"+heads@{models.DIGESTS[models.HEADS][:12]}"
        )

    def read(self, texts: Sequence[str]) -> Iterator[FactScores]:
        """One per text, in order, as they are asked for; other cores begin to read at once. Raises: IntegrityError,
        DependencyUnavailable.
        """
        return self._scores_of_parts(texts, self._encoder.read_parts(texts))

    def _scores_of_parts(self, texts: Sequence[str], parts: Iterable[TextEmbeddings]) -> Iterator[FactScores]:
        start = 0
        for embeddings in parts:
            end = start + len(embeddings.states)
            yield from self.scores(texts[start:end], embeddings)
            start = end

    def scores(self, texts: Sequence[str], embeddings: TextEmbeddings) -> list[FactScores]:
        """One per text, in order, from what the encoder gave for it. Raises: IntegrityError."""
        heads, sentiment = self._heads, self._sentiment
        points, states = embeddings
        moods = sentiment.probabilities(points, states, [cue_ids(text) for text in texts])
        moods = moods[:, [sentiment.labels.index(label) for label in _SENTIMENT_LABELS]]
        return heads.read_each(states, [self._encoder.spans(text) for text in texts], moods)

    @cached_property
    def _heads(self) -> FactHeads:
        """Held to their digest. Raises: IntegrityError, InvalidInput."""
        return FactHeads.load(models.FACTS, models.FACT_HEADS_DIGEST)

    @cached_property
    def _sentiment(self) -> Head:
        """Held to its digest. Raises: IntegrityError, InvalidInput."""
        return (self._shipped or open_heads()).heads["sentiment"]


def _source(encoder: SentenceEncoder) -> str:
    return encoder.version.partition(":")[0]


class HeadlineFacts:
    """The facts of headlines, with no asset asked about, behind `encoding.text_reading.FactExtractor`."""

    def __init__(self, network: ShippedFactNetwork, linker: EntityLinker) -> None:
        self._network, self._linker = network, linker

    def extract(self, texts: Sequence[str], embeddings: TextEmbeddings) -> list[bytes]:
        """One per text, in order, for `FactReader` to decode. Raises: IntegrityError."""
        return [
            encode_facts(extract_facts(text, scores, self._linker, self._network.version))
            for text, scores in zip(texts, self._network.scores(texts, embeddings), strict=True)
        ]


def symbol_linker(names: Mapping[str, str] | None = None) -> EntityLinker:
    """What finds the companies and assets that a text names; `names` are what symbols are called."""
    return EntityLinker({symbol: [name] for symbol, name in (names or {}).items() if name})


def open_fact_reader(config: EncodingConfig, names: Mapping[str, str] | None = None) -> FactReader:
    """A reader of facts alone, as for `htfi news`; `names` are what symbols are called. Raises: IntegrityError."""
    if config.model == "none":
        return fact_reader(None, names)
    return fact_reader(shipped_encoder(config), names)


def fact_reader(encoder: SentenceEncoder | None, names: Mapping[str, str] | None = None) -> FactReader:
    """The reader of facts on an encoder that is open; without one, code alone reads."""
    return FactReader(None if encoder is None else ShippedFactNetwork(encoder), symbol_linker(names))
