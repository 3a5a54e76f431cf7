"""Opens the reader of facts: the shipped encoder tuned for facts with its heads, and the names of a run's symbols."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from htfi import models
from htfi.narrative.config import EncodingConfig
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.extraction import FactScores
from htfi.narrative.facts.fact_reader import FactReader
from htfi.narrative.facts.network import FactHeads
from htfi.wiring.news import SentenceEncoder, packed_encoder
from htfi.wiring.settings import Settings


class ShippedFactNetwork:
    """The tuned encoder with its heads, behind `extraction.FactNetwork`; its files are opened at the first text."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._folder, self._threads = folder, threads
        self.version = (
            f"{models.FACTS_SOURCE}@{models.DIGESTS[folder][:12]}+facts@{models.FACT_HEADS_DIGEST[:12]}"
        )

    def read(self, texts: Sequence[str]) -> list[FactScores]:
        """One per text, in order. Raises: IntegrityError, DependencyUnavailable."""
        encoder, heads = self._opened
        states = encoder.read(texts).states
        return [heads.read(state, encoder.spans(text)) for state, text in zip(states, texts, strict=True)]

    @cached_property
    def _opened(self) -> tuple[SentenceEncoder, FactHeads]:
        """Held to their digests. Raises: IntegrityError, InvalidInput, DependencyUnavailable."""
        encoder = packed_encoder(self._folder, models.FACTS_SOURCE, EncodingConfig(threads=self._threads))
        return encoder, FactHeads.load(self._folder, models.FACT_HEADS_DIGEST)


def run_fact_reader(settings: Settings) -> FactReader | None:
    """The reader of facts of a run; None where another encoder is configured than the shipped ones. Raises:
    IntegrityError, InvalidInput.
    """
    config = settings.encoding
    return open_fact_reader(config, settings.narrative.symbol_names) if config.model == "auto" else None


def open_fact_reader(config: EncodingConfig, names: Mapping[str, str] | None = None) -> FactReader:
    """The reader of facts; `names` are what the symbols of a run are called. Raises: IntegrityError, InvalidInput."""
    linker = EntityLinker({symbol: [name] for symbol, name in (names or {}).items() if name})
    if config.model == "none":
        return FactReader(None, linker)
    return FactReader(ShippedFactNetwork(models.FACTS, config.threads), linker)
