"""Opens language models: the shipped pair or any folder, as authors and readers. The engine and the CLI ask for them.

A pair is checked when a run starts and loaded at its first question, so that a run without news pays nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from htfi import models
from htfi.adapters.onnx.written import Precision
from htfi.adapters.stores.recent_answers import RecentAnswers
from htfi.decoding.config import DecodingConfig
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.decision import Rung
from htfi.domain.errors import InvalidInput
from htfi.domain.writing import Refusal, Request, Spoken, Writing
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.deep_reader import DeepReader
from htfi.narrative.model_reader import ModelReader
from htfi.narrative.ports import Author, Reader
from htfi.narrative.template_reader import TemplateReader
from htfi.wiring.caching import OpenCache
from htfi.wiring.following import FollowingAuthor, RememberingAuthor
from htfi.wiring.open_folder import PRECISIONS, TORCH_PRECISIONS, OpenFolder, open_folder
from htfi.wiring.promotion import PromotedDraft
from htfi.wiring.speculation import speculative_author, tell


@dataclass(frozen=True, slots=True)
class ModelsConfig:
    """Which models read, and what runs them. A folder that is not named is the shipped one.

    `engine` is 'onnx', the embedded one, or 'torch' (extra [train]), which uses a GPU where there is one. A draft that
    is promoted in the folder `drafts` is picked up between requests; what the target says is kept in the folder
    `recent`, from which `htfi models distil` teaches a draft. `frontier_url` and `frontier_model` name a model behind
    an OpenAI-compatible address (extra [frontier]) that reads in depth, its key in the variable `frontier_key`.
    """

    target: str = ""
    draft: str = ""
    engine: str = "onnx"
    precision: str = Precision.INT8.value
    drafts: str = ""
    recent: str = ""
    frontier_url: str = ""
    frontier_model: str = ""
    frontier_key: str = "OPENAI_API_KEY"

    def __post_init__(self) -> None:
        engines = {"onnx": PRECISIONS, "torch": tuple(TORCH_PRECISIONS)}
        if self.engine not in engines:
            raise InvalidInput(f"models.engine must be onnx or torch, not '{self.engine}'")
        known = engines[self.engine]
        if self.precision not in known:
            raise InvalidInput(
                f"models.precision must be one of {', '.join(known)} with the engine {self.engine}, "
                f"not '{self.precision}'"
            )


def open_pair(config: ModelsConfig) -> tuple[OpenFolder, OpenFolder]:
    """Target and draft, checked to share their vocabulary.

    Raises: InvalidInput, IntegrityError.
    """
    target, draft = (
        open_folder(Path(named) if named else shipped, config.precision, config.engine)
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
    cache: OpenCache | None = None,
) -> dict[Rung, Reader]:
    """The reader of each rung that has one: none, the draft, the target, the target in full precision.

    Where manipulation is suspected the target reads alone: nothing drafts for it, and nobody learns from what it says.
    """
    readers: dict[Rung, Reader] = {Rung.TEMPLATE: TemplateReader(narrative)}
    if not (config.target or config.draft or models.DIGESTS):
        return readers
    target, draft = open_pair(config)
    if cache is not None:
        prefixes = cache.prefixes(narrative)
        target, draft = replace(target, prefixes=prefixes), replace(draft, prefixes=prefixes)
    edge = LazyAuthor(draft, lambda: draft.author(decoding))
    speculative = LazyAuthor(target, lambda: open_speculative(config, target, draft, decoding))
    readers[Rung.EDGE] = ModelReader(edge, narrative, draft.trust, meaning=draft.meaning)
    readers[Rung.SPECULATIVE] = ModelReader(speculative, narrative, target.trust, meaning=target.meaning)
    alone = LazyAuthor(target, lambda: target.author(decoding))
    readers[Rung.SECURE] = ModelReader(alone, narrative, target.trust, meaning=target.meaning)
    full = in_full(target)
    deep = LazyAuthor(full, lambda: full.author(decoding))
    readers[Rung.DEEP] = DeepReader(deep, narrative, full.trust, full.meaning)
    if config.frontier_url:
        readers[Rung.DEEP] = frontier_reader(config, narrative)
    return readers if cache is None else cache.around(readers, target, draft, narrative, decoding)


def frontier_reader(config: ModelsConfig, narrative: NarrativeConfig) -> Reader:
    """The model that reads in depth behind an address. Raises: InvalidInput, MissingExtra."""
    from htfi.wiring.frontier import open_frontier

    author = open_frontier(
        base_url=config.frontier_url, model=config.frontier_model, key_variable=config.frontier_key
    )
    return ModelReader(author, narrative)


def in_full(opened: OpenFolder) -> OpenFolder:
    """The same model in the precision that it was trained in."""
    full = Precision.FP32.value
    return opened if opened.precision == full else replace(opened, precision=full)


def open_speculative(
    config: ModelsConfig, target: OpenFolder, draft: OpenFolder, decoding: DecodingConfig
) -> Author:
    """The author of the speculative rung, which follows promoted drafts and remembers what it said, as configured.

    Raises: InvalidInput, DependencyUnavailable.
    """
    author: Author
    if config.drafts:
        promoted = PromotedDraft(Path(config.drafts), draft, tell)
        author = FollowingAuthor(promoted, lambda found: speculative_author(target, found, decoding), tell)
    else:
        author = speculative_author(target, draft, decoding)
    if config.recent:
        author = RememberingAuthor(author, RecentAnswers(Path(config.recent)), target.tokenizer.digest, tell)
    return author


class LazyAuthor:
    """An author that loads its models at the first request."""

    def __init__(self, opened: OpenFolder, build: Callable[[], Author]) -> None:
        self._build = build
        self._author: Author | None = None
        self.version = opened.version
        self.dialect = Vocabulary(opened.tokenizer).dialect

    @property
    def spoken(self) -> Spoken | None:
        return self._author.spoken if self._author is not None else None

    def write(self, requests: Sequence[Request]) -> list[Writing | Refusal]:
        """One answer per request, in order. Raises: InvalidInput, DependencyUnavailable when it cannot be loaded."""
        if self._author is None:
            self._author = self._build()
        return self._author.write(requests)
