"""Opens language models as generators or readers: the shipped pair, any folder, or a server that speaks OpenAI's API.

A pair is checked when a run starts and loaded at its first question, so that a run without news pays nothing. httpx is
imported only for a remote model.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from htfi import models
from htfi.adapters.onnx.session import Precision
from htfi.adapters.stores.replay_buffer import ReplayBufferFile
from htfi.decoding.config import DecodingConfig
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.promotion import PromotedDraftGenerator, PromotedDraftSource
from htfi.decoding.replay_buffer import RecordingGenerator
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.decision import Rung
from htfi.domain.errors import InvalidInput
from htfi.domain.file_digests import DigestFile, file_digest
from htfi.domain.generation import Completion, GenerationRequest, RequestRefused, SpeculationStats
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.deep_reader import DeepReader
from htfi.narrative.ports import NewsReader, NoiseKey, TextGenerator
from htfi.narrative.readers import DigestStates, ModelReader, TemplateReader
from htfi.pipeline.audit.attribution import ExplainingModel, traced_states
from htfi.telemetry.spans import NO_SPANS, StepSpans
from htfi.wiring.models.caching import RunCache
from htfi.wiring.models.config import ModelsConfig
from htfi.wiring.models.loading import LoadableModel, open_like, open_model
from htfi.wiring.models.speculation import require_shared_noise, speculative_generator
from htfi.wiring.notices import warn


def open_model_pair(
    config: ModelsConfig, digest_file: DigestFile = file_digest
) -> tuple[LoadableModel, LoadableModel]:
    """Target and draft, checked to share their vocabulary.

    Raises: InvalidInput, IntegrityError.
    """
    target, draft = (
        open_model(Path(named) if named else shipped, config.precision, config.engine, digest_file)
        for named, shipped in ((config.target, models.TARGET), (config.draft, models.DRAFT))
    )
    if target.tokenizer.digest != draft.tokenizer.digest:
        raise InvalidInput(
            f"target {target.folder.path} and draft {draft.folder.path} have different tokenizers: "
            "a draft must come from its target's family"
        )
    return target, draft


def open_readers(
    config: ModelsConfig,
    narrative: NarrativeConfig,
    decoding: DecodingConfig,
    cache: RunCache | None = None,
    digest_file: DigestFile = file_digest,
    key: NoiseKey | None = None,
    spans: StepSpans = NO_SPANS,
) -> dict[Rung, NewsReader]:
    """The reader of each rung that has one: none, the draft, the target, the target in full precision.

    Where manipulation is suspected the target reads alone: nothing drafts for it, and no draft learns from it. With a
    marking `key` their noise follows from it. `spans` takes their rounds, where a reading is traced.

    Raises: InvalidInput, IntegrityError.
    """
    if key is not None:
        require_shared_noise(decoding, "a marking key")
    readers: dict[Rung, NewsReader] = {Rung.TEMPLATE: TemplateReader(narrative)}
    if not (config.target or config.draft or models.DIGESTS):
        return readers
    target, draft = open_model_pair(config, digest_file)
    if cache is not None:
        prefixes = cache.prompt_blocks(narrative)
        target, draft = replace(target, prompt_blocks=prefixes), replace(draft, prompt_blocks=prefixes)
    edge = LazyGenerator(draft, lambda: _traced(draft.plain_generator(decoding), spans))
    speculative = LazyGenerator(target, lambda: open_speculative(config, target, draft, decoding, spans))
    states = _states_of(target, narrative)
    readers[Rung.EDGE] = ModelReader(
        edge,
        narrative,
        draft.trust,
        meaning=draft.meaning,
        digest_states=_states_of(draft, narrative),
        key=key,
    )
    readers[Rung.SPECULATIVE] = ModelReader(
        speculative, narrative, target.trust, meaning=target.meaning, digest_states=states, key=key
    )
    alone = LazyGenerator(target, lambda: _traced(target.plain_generator(decoding), spans))
    readers[Rung.SECURE] = ModelReader(
        alone, narrative, target.trust, meaning=target.meaning, digest_states=states, key=key
    )
    full = in_full_precision(target)
    deep = LazyGenerator(full, lambda: _traced(full.plain_generator(decoding), spans))
    readers[Rung.DEEP] = DeepReader(
        deep, narrative, full.trust, full.meaning, _states_of(full, narrative), key
    )
    if config.frontier_url:
        readers[Rung.DEEP] = frontier_reader(config, narrative)
    return readers if cache is None else cache.wrap_readers(readers, target, draft, narrative, decoding)


def _traced(generator: LocalGenerator, spans: StepSpans) -> LocalGenerator:
    generator.spans = spans
    return generator


def _states_of(opened: LoadableModel, narrative: NarrativeConfig) -> DigestStates | None:
    if not narrative.trace:
        return None
    model = cast("ExplainingModel", opened)  # a cached property is not a property to a type checker
    return partial(traced_states, model, tuple(opened.tokenizer.opening))


def frontier_reader(config: ModelsConfig, narrative: NarrativeConfig) -> NewsReader:
    """The model that reads in depth behind an address. Raises: InvalidInput, MissingExtra."""
    from htfi.wiring.models.readers import open_frontier

    generator = open_frontier(
        base_url=config.frontier_url, model=config.frontier_model, key_variable=config.frontier_key
    )
    return ModelReader(generator, narrative)


def in_full_precision(opened: LoadableModel) -> LoadableModel:
    """The same model in the precision that it was trained in."""
    full = Precision.FP32.value
    return opened if opened.precision == full else replace(opened, precision=full)


def open_speculative(
    config: ModelsConfig,
    target: LoadableModel,
    draft: LoadableModel,
    decoding: DecodingConfig,
    spans: StepSpans = NO_SPANS,
) -> TextGenerator:
    """The generator of the speculative rung, which follows promoted drafts and remembers what it said, as configured.

    Raises: InvalidInput, DependencyUnavailable.
    """
    generator: TextGenerator
    if config.replay_buffer:
        require_shared_noise(decoding, "models.replay_buffer, from which drafts are trained and judged,")
    if config.promoted_drafts:
        promoted = PromotedDraftSource(Path(config.promoted_drafts), draft, open_like, warn)
        generator = PromotedDraftGenerator(
            promoted, lambda found: _traced(speculative_generator(target, found, decoding), spans), warn
        )
    else:
        generator = _traced(speculative_generator(target, draft, decoding), spans)
    if config.replay_buffer:
        generator = RecordingGenerator(
            generator, ReplayBufferFile(Path(config.replay_buffer)), target.tokenizer.digest, warn
        )
    return generator


class LazyGenerator:
    """A generator that loads its models at the first request."""

    def __init__(self, opened: LoadableModel, build: Callable[[], TextGenerator]) -> None:
        self._build = build
        self._generator: TextGenerator | None = None
        self.version = opened.version
        self.dialect = Vocabulary(opened.tokenizer).dialect

    @property
    def speculation_stats(self) -> SpeculationStats | None:
        return self._generator.speculation_stats if self._generator is not None else None

    def write(self, requests: Sequence[GenerationRequest]) -> list[Completion | RequestRefused]:
        """One answer per request, in order. Raises: InvalidInput, DependencyUnavailable when it cannot be loaded."""
        if self._generator is None:
            self._generator = self._build()
        return self._generator.write(requests)


if TYPE_CHECKING:
    from htfi.adapters.openai.generator import OpenAIGenerator


def open_frontier(**options: Any) -> "OpenAIGenerator":
    """A generator with the budget and limits of `FrontierConfig`; close it, or use `with`.

    Raises: InvalidInput, MissingExtra.
    """
    from htfi.adapters.openai.config import FrontierConfig
    from htfi.adapters.openai.generator import OpenAIGenerator

    try:
        config = msgspec.convert(options, FrontierConfig)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"frontier: {error}") from error
    return OpenAIGenerator(config, os.environ)
