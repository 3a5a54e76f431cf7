"""A model's folder whose files were found whole, ready to load on either engine. Models, checks and benches open it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from htfi import models
from htfi.adapters.onnx.written import Precision
from htfi.adapters.tokenizer.hugging_face import HuggingFaceTokenizer
from htfi.decoding.author import LocalAuthor
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.config import DecodingConfig
from htfi.decoding.kept_blocks import KeptBlocks
from htfi.decoding.ports import Network
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.narrative.answer import Trust
from htfi.narrative.meaning import Meaning
from htfi.wiring.model_trust import read_meaning, read_trust

PRECISIONS = tuple(precision.value for precision in Precision)
TORCH_PRECISIONS = {"fp32": "float32", "bf16": "bfloat16"}


@dataclass(frozen=True)
class OpenFolder:
    """A folder whose files were found whole: it can be loaded, and its identity is known."""

    folder: ModelFolder
    tokenizer: HuggingFaceTokenizer
    precision: str
    engine: str = "onnx"
    prefixes: Callable[[Network], KeptBlocks] | None = None  # where prompts lie that were read elsewhere

    @property
    def name(self) -> str:
        engine = "" if self.engine == "onnx" else f"{self.engine}-"
        return f"{self.folder.path.name}-{engine}{self.precision}"

    @property
    def version(self) -> str:
        """Name and digest, as records tell it."""
        return f"{self.name}@{self.folder.digest[:12]}"

    @cached_property
    def network(self) -> Network:
        if self.engine == "torch":
            return load_torch_network(self.folder, self.precision)
        return load_network(self.folder, self.precision)

    @cached_property
    def drafting(self) -> Network:
        """The network as a draft: in C where it was compiled and takes the model, as no guess reaches an answer."""
        return self.network if self.engine == "torch" else load_draft_network(self.folder, self.precision)

    @cached_property
    def trust(self) -> Trust:
        """How far its confidence has proved right, where that was measured."""
        return read_trust(self.folder.path)

    @cached_property
    def meaning(self) -> Meaning | None:
        """What its views have proved to mean, where that was measured."""
        return read_meaning(self.folder.path)

    def author(self, config: DecodingConfig) -> LocalAuthor:
        """Load it. Raises: InvalidInput, DependencyUnavailable."""
        return self._author(self.network, config)

    def drafting_author(self, config: DecodingConfig) -> LocalAuthor:
        """As an author on the engine that it drafts on. Raises: InvalidInput, DependencyUnavailable."""
        return self._author(self.drafting, config)

    def _author(self, network: Network, config: DecodingConfig) -> LocalAuthor:
        return LocalAuthor(
            network,
            self.tokenizer,
            self.name,
            config,
            self.tokenizer.opening,
            self.folder.digest,
            kept=self.kept(network),
        )

    def kept(self, network: Network) -> KeptBlocks | None:
        """The prompts that a network of this folder finds already read elsewhere."""
        return None if self.prefixes is None else self.prefixes(network)


def load_network(folder: ModelFolder, precision: str, cache_folder: Path | None = None) -> Network:
    """The network of a folder on the embedded engine; its graph is written first where none is cached.

    Raises: InvalidInput, DependencyUnavailable.
    """
    from htfi.adapters.onnx.network import OnnxNetwork

    return OnnxNetwork(folder, Precision(precision), cache_folder=cache_folder)


def load_draft_network(folder: ModelFolder, precision: str) -> Network:
    """A folder's network for guessing ahead, the fastest there is. Raises: InvalidInput, DependencyUnavailable."""
    from htfi.adapters.native.network import NativeNetwork, available

    if available():
        try:
            return NativeNetwork(folder)
        except InvalidInput:  # too large, or of a kind that it does not know
            pass
    return load_network(folder, precision)


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
