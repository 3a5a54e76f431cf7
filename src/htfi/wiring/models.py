"""Opens language models: the shipped pair or any folder, as authors and readers. The engine and the CLI ask for them.

A pair is checked when a run starts and loaded at its first question, so that a run without news pays nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from htfi import models
from htfi.adapters.onnx.written import Precision
from htfi.adapters.tokenizer.hugging_face import HuggingFaceTokenizer
from htfi.decoding.author import LocalAuthor
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.config import DecodingConfig
from htfi.decoding.ports import Network
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.decision import Rung
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.writing import Refusal, Request, Writing
from htfi.narrative.answer import Trust
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.model_reader import ModelReader
from htfi.narrative.ports import Author, Reader
from htfi.narrative.template_reader import TemplateReader
from htfi.wiring.model_trust import read_trust

PRECISIONS = tuple(precision.value for precision in Precision)
TORCH_PRECISIONS = {"fp32": "float32", "bf16": "bfloat16"}


@dataclass(frozen=True, slots=True)
class ModelsConfig:
    """Which models read, and what runs them. A folder that is not named is the shipped one.

    `engine` is 'onnx', the embedded one, or 'torch' (extra [train]), which uses a GPU where there is one.
    """

    target: str = ""
    draft: str = ""
    engine: str = "onnx"
    precision: str = Precision.INT8.value

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


@dataclass(frozen=True)
class OpenFolder:
    """A folder whose files were found whole: it can be loaded, and its identity is known."""

    folder: ModelFolder
    tokenizer: HuggingFaceTokenizer
    precision: str
    engine: str = "onnx"

    @property
    def name(self) -> str:
        engine = "" if self.engine == "onnx" else f"{self.engine}-"
        return f"{self.folder.path.name}-{engine}{self.precision}"

    @cached_property
    def network(self) -> Network:
        if self.engine == "torch":
            return load_torch_network(self.folder, self.precision)
        return load_network(self.folder, self.precision)

    @cached_property
    def trust(self) -> Trust:
        """How far its confidence has proved right, where that was measured."""
        return read_trust(self.folder.path)

    def author(self, config: DecodingConfig) -> LocalAuthor:
        """Load it. Raises: InvalidInput, DependencyUnavailable."""
        return LocalAuthor(
            self.network, self.tokenizer, self.name, config, self.tokenizer.opening, self.folder.digest
        )


def load_network(folder: ModelFolder, precision: str, cache_folder: Path | None = None) -> Network:
    """The network of a folder on the embedded engine; its graph is written first where none is cached.

    Raises: InvalidInput, DependencyUnavailable.
    """
    from htfi.adapters.onnx.network import OnnxNetwork

    return OnnxNetwork(folder, Precision(precision), cache_folder=cache_folder)


def load_torch_network(folder: ModelFolder, precision: str) -> Network:
    """The network of a folder on torch, on a GPU where there is one. Raises: MissingExtra, InvalidInput."""
    from htfi.adapters.torch.extra import require_torch

    require_torch("the engine 'torch'")
    from htfi.adapters.torch.network import TorchNetwork

    return TorchNetwork(folder, dtype=TORCH_PRECISIONS[precision])


def open_folder(path: Path, precision: str, engine: str = "onnx") -> OpenFolder:
    """Check a model's folder without loading it. Raises: InvalidInput; IntegrityError for a changed shipped one."""
    folder = ModelFolder.open(path)
    expected = models.DIGESTS.get(path)
    if expected is not None and folder.digest != expected:
        raise IntegrityError(
            f"{path}: the shipped model has changed (digest {folder.digest[:12]}, expected {expected[:12]}): "
            "install the package again"
        )
    if not folder.architecture.is_causal:
        raise InvalidInput(f"{path}: an encoder cannot write: name the folder of a causal language model")
    return OpenFolder(folder, HuggingFaceTokenizer(folder.tokenizer_file), precision, engine)


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
    config: ModelsConfig, narrative: NarrativeConfig, decoding: DecodingConfig
) -> dict[Rung, Reader]:
    """The reader of each rung that has one: none, the draft, the target."""
    readers: dict[Rung, Reader] = {Rung.TEMPLATE: TemplateReader(narrative)}
    if not (config.target or config.draft or models.DIGESTS):
        return readers
    target, draft = open_pair(config)
    for rung, opened in ((Rung.EDGE, draft), (Rung.SPECULATIVE, target)):
        readers[rung] = ModelReader(LazyAuthor(opened, decoding), narrative, opened.trust)
    return readers


class LazyAuthor:
    """An author that loads its model at the first request."""

    def __init__(self, opened: OpenFolder, config: DecodingConfig) -> None:
        self._opened = opened
        self._config = config
        self._author: Author | None = None
        self.version = f"{opened.name}@{opened.folder.digest[:12]}"
        self.dialect = Vocabulary(opened.tokenizer).dialect

    def write(self, requests: Sequence[Request]) -> list[Writing | Refusal]:
        """One answer per request, in order. Raises: InvalidInput, DependencyUnavailable when it cannot be loaded."""
        if self._author is None:
            self._author = self._opened.author(self._config)
        return self._author.write(requests)
