"""Builds the reading of news of a run: encoder, heads, facts, linker, sanitiser, suspicion."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from htfi.domain.file_digests import DigestFile, file_digest
from htfi.narrative.config import EncodingConfig
from htfi.narrative.encoding.heads import Heads
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.encoding.read_ahead import ReadAheadTextReader
from htfi.narrative.encoding.scorer import NewsScorer
from htfi.narrative.encoding.text_reading import EncoderTextReader, TextReader
from htfi.narrative.facts.fact_reader import FactReader
from htfi.narrative.neutral_reader import NeutralFactReader
from htfi.narrative.processor import NewsProcessor, forget_nothing
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi.narrative.suspicion import SuspicionMonitor
from htfi.wiring.encoder import heads_for, open_encoder, shipped_encoder
from htfi.wiring.facts import HeadlineFacts, ShippedFactNetwork, fact_reader, symbol_linker
from htfi.wiring.sentence_encoder import SentenceEncoder
from htfi.wiring.settings import Settings

if TYPE_CHECKING:  # in memory there is none
    from htfi.wiring.models.caching import RunCache


def build_news_processor(
    settings: Settings,
    context: "RunCache | None" = None,
    *,
    has_frontier: bool = False,
    digest_file: DigestFile | None = file_digest,
) -> NewsProcessor:
    """A news processor without history; `has_frontier` where a frontier model reads in depth.

    `digest_file` is as in `open_encoder`. Scores and facts are read from one pass of the encoder. Scores ask `context`
    first, and the processor states what to forget. Facts are read by the shipped encoder alone.

    Raises: InvalidInput, IntegrityError, where the encoder that is configured is not what it should be.
    """
    config, names = settings.encoding, settings.narrative.symbol_names
    opened = open_encoder(config, digest_file)
    linker = EntityLinker({symbol: [name] for symbol, name in names.items()})
    if opened is None:
        texts = ahead = cached = heads = neutral = None
        facts = fact_reader(None, names) if config.model == "auto" else None
    else:
        heads = heads_for(opened)
        network = ShippedFactNetwork(opened, heads) if config.model == "auto" else None
        names_of_facts = symbol_linker(names)
        ahead = _text_reader(opened, heads, network, names_of_facts)
        version = "" if network is None else network.version
        cached = None if context is None else context.wrap_texts(ahead, heads, version, settings.narrative)
        texts = cached or ahead
        facts = None if network is None else FactReader(network, names_of_facts, texts)
        neutral = None if network is None else NeutralFactReader(network, names_of_facts)
    scorer = NewsScorer(texts, heads, linker)
    return NewsProcessor(
        settings.narrative,
        settings.routing,
        Sanitiser(settings.sanitiser),
        scorer if context is None else context.wrap_scorer(scorer, cached),
        SuspicionMonitor(settings.suspicion),
        facts=facts,
        neutral_facts=neutral,
        read_ahead=ahead,
        deadline_ms=settings.pipeline.deadline_ms,
        has_frontier=has_frontier,
        forget=forget_nothing if context is None else context.tiers.forget,
    )


def open_readers_of_items(settings: Settings) -> tuple[TextReader, FactReader]:
    """The readers of texts and of facts with which a run of `encoding.model = "auto"` reads, without its caches.

    Raises: InvalidInput, IntegrityError.
    """
    linker = symbol_linker(settings.narrative.symbol_names)
    opened = shipped_encoder(settings.encoding)
    heads = heads_for(opened)
    network = ShippedFactNetwork(opened, heads)
    texts = _text_reader(opened, heads, network, linker)
    return texts, FactReader(network, linker, texts)


def open_neutral_reader(settings: Settings) -> FactReader:
    """The reader of facts with which a run reads where its views are put to the swap test. Raises: InvalidInput,
    IntegrityError.
    """
    network = ShippedFactNetwork(shipped_encoder(settings.encoding))
    return NeutralFactReader(network, symbol_linker(settings.narrative.symbol_names))


def _text_reader(
    encoder: SentenceEncoder,
    heads: Heads | None,
    network: ShippedFactNetwork | None,
    linker: EntityLinker,
) -> ReadAheadTextReader:
    headlines = None if network is None else HeadlineFacts(network, linker)
    return ReadAheadTextReader(EncoderTextReader(encoder, heads, headlines), encoder.begin)


def open_scorer(config: EncodingConfig, names: Mapping[str, Iterable[str]] | None = None) -> NewsScorer:
    """A scorer that has read nothing yet; `names` are what the run's symbols are called.

    Raises: IntegrityError, InvalidInput, where the encoder or the heads are not what they should be.
    """
    encoder = open_encoder(config)
    heads = heads_for(encoder)
    reader = None if encoder is None else EncoderTextReader(encoder, heads)
    return NewsScorer(reader, heads, EntityLinker(names or {}))
