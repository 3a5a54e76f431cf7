"""Opens model folders: checks their files, loads networks and tokenizers, reads and writes the calibration.

The calibration of a model's views is kept in its folder's config.json. A network's graph can also be written as one
file with its weights inside, for other runtimes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from htfi import models
from htfi.adapters.onnx.session import Precision
from htfi.adapters.tokenizer.hugging_face import HuggingFaceTokenizer
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.config import DecodingConfig
from htfi.decoding.kv_cache import SharedKVBlocks
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.ports import Network, StatesNetwork
from htfi.decoding.state_digests import state_digests
from htfi.decoding.strategies.recorded import RecordedStrategy
from htfi.decoding.strategy import AcceptanceRule
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import DependencyUnavailable, HtfiError, IntegrityError, InvalidInput, require_extra
from htfi.domain.file_digests import DigestFile, file_digest
from htfi.domain.files import write_atomically
from htfi.domain.generation_trace import GenerationTrace, StateDigests
from htfi.narrative.answer import UNCALIBRATED, ConfidenceCalibration
from htfi.narrative.view_calibration import ViewCalibration
from htfi.pipeline.audit.token_text import TokenText
from htfi.wiring.models.config import TORCH_PRECISIONS


@dataclass(frozen=True)
class LoadableModel:
    """A folder whose files were found whole: it can be loaded, and its identity is known."""

    folder: ModelFolder
    tokenizer: HuggingFaceTokenizer
    precision: str
    engine: str = "onnx"
    prompt_blocks: Callable[[Network], SharedKVBlocks] | None = (
        None  # where prompts lie that were read elsewhere
    )

    @property
    def name(self) -> str:
        engine = "" if self.engine == "onnx" else f"{self.engine}-"
        return f"{self.folder.path.name}-{engine}{self.precision}"

    @property
    def version(self) -> str:
        """Name and digest, as records state it."""
        return f"{self.name}@{self.folder.digest[:12]}"

    @cached_property
    def network(self) -> Network:
        if self.engine == "torch":
            return load_torch_network(self.folder, self.precision)
        return load_network(self.folder, self.precision)

    @cached_property
    def states_network(self) -> StatesNetwork:
        """The network on the embedded engine, with its states to look at. Raises: InvalidInput."""
        if self.engine == "torch":
            raise InvalidInput(
                "narrative.trace: states are recorded with models.engine 'onnx' alone: choose it"
            )
        from htfi.adapters.onnx.network import OnnxNetwork

        return OnnxNetwork(self.folder, Precision(self.precision), with_states=True)

    def state_digests(self, prompt: Sequence[int], tokens: Sequence[int]) -> StateDigests:
        """The digests of the states by which it came to an answer. Raises: InvalidInput, DependencyUnavailable."""
        return state_digests(self.states_network, prompt, tokens)

    @cached_property
    def draft_network(self) -> Network:
        """The network as a draft: in C where it was compiled and takes the model, as no guess reaches an answer."""
        return self.network if self.engine == "torch" else load_draft_network(self.folder, self.precision)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(self.tokenizer)

    @cached_property
    def trust(self) -> ConfidenceCalibration:
        """How far its confidence has proved right, where that was measured."""
        return read_trust(self.folder.path)

    @cached_property
    def meaning(self) -> ViewCalibration | None:
        """What its views have proved to mean, where that was measured."""
        return read_meaning(self.folder.path)

    def plain_generator(self, config: DecodingConfig) -> LocalGenerator:
        """Load it. Raises: InvalidInput, DependencyUnavailable."""
        return self._plain_generator(self.network, config)

    def drafting_generator(self, config: DecodingConfig) -> LocalGenerator:
        """A generator on the engine that it drafts on. Raises: InvalidInput, DependencyUnavailable."""
        return self._plain_generator(self.draft_network, config)

    def generator(
        self,
        network: Network,
        config: DecodingConfig,
        strategy: RecordedStrategy | None = None,
        rule: AcceptanceRule | None = None,
    ) -> LocalGenerator:
        """A generator on one of its networks, without cached prompts."""
        return LocalGenerator(
            network,
            self.tokenizer,
            self.name,
            config,
            self.tokenizer.opening,
            self.folder.digest,
            strategy,
            rule=rule,
        )

    def _plain_generator(self, network: Network, config: DecodingConfig) -> LocalGenerator:
        return LocalGenerator(
            network,
            self.tokenizer,
            self.name,
            config,
            self.tokenizer.opening,
            self.folder.digest,
            kept=self.cached_prompts(network),
        )

    def cached_prompts(self, network: Network) -> SharedKVBlocks | None:
        """The prompts that a network of this folder finds already read elsewhere."""
        return None if self.prompt_blocks is None else self.prompt_blocks(network)


def load_network(folder: ModelFolder, precision: str, cache_folder: Path | None = None) -> Network:
    """The network of a folder on the embedded engine; its graph is written first where none is cached.

    Raises: InvalidInput, DependencyUnavailable.
    """
    from htfi.adapters.onnx.network import OnnxNetwork

    return OnnxNetwork(folder, Precision(precision), cache_folder=cache_folder)


def load_draft_network(folder: ModelFolder, precision: str) -> Network:
    """A folder's network for guessing ahead, the fastest there is. Raises: InvalidInput, DependencyUnavailable."""
    from htfi.adapters.native.network import NativeNetwork, is_compiled

    if is_compiled():
        try:
            return NativeNetwork(folder)
        except InvalidInput:  # too large, or of a kind that it does not know
            pass
    return load_network(folder, precision)


def load_torch_network(folder: ModelFolder, precision: str) -> Network:
    """The network of a folder on torch, on a GPU where there is one. Raises: MissingExtra, InvalidInput."""

    require_extra("the engine 'torch'", "train", "torch")
    from htfi.adapters.torch.llama import TorchNetwork

    return TorchNetwork(folder, dtype=TORCH_PRECISIONS[precision])


def open_model(
    path: Path, precision: str, engine: str = "onnx", digest_file: DigestFile = file_digest
) -> LoadableModel:
    """Check a model's folder without loading it. Raises: InvalidInput; IntegrityError for a changed shipped one."""
    folder = ModelFolder.open(path, digest_file)
    expected = models.DIGESTS.get(path)
    if expected is not None and folder.digest != expected:
        raise IntegrityError(
            f"{path}: the shipped model has changed (digest {folder.digest[:12]}, expected {expected[:12]}): "
            "install the package again"
        )
    if not folder.architecture.is_causal:
        raise InvalidInput(f"{path}: an encoder cannot write: name the folder of a causal language model")
    return LoadableModel(folder, HuggingFaceTokenizer(folder.tokenizer_file), precision, engine)


def open_like(path: Path, other: LoadableModel) -> LoadableModel:
    """A folder in the precision and on the engine of another model. Raises: InvalidInput, IntegrityError."""
    return open_model(path, other.precision, other.engine)


TRUST_KEY, MEANING_KEY = "htfi_trust", "htfi_meaning"
_Measured = TypeVar("_Measured", ConfidenceCalibration, ViewCalibration)


def read_trust(folder: Path) -> ConfidenceCalibration:
    """How far the model in `folder` proved right; its word where nothing was measured. Raises: InvalidInput."""
    return _read_measured(folder, TRUST_KEY, ConfidenceCalibration) or UNCALIBRATED


def read_meaning(folder: Path) -> ViewCalibration | None:
    """What its views proved to mean, None where nothing was measured. Raises: InvalidInput."""
    return _read_measured(folder, MEANING_KEY, ViewCalibration)


def write_trust(folder: Path, trust: ConfidenceCalibration, meaning: ViewCalibration | None = None) -> None:
    """Keep both in the folder, whose digest changes with them. Raises: InvalidInput, DependencyUnavailable."""
    config = {**_read_config(folder), TRUST_KEY: msgspec.to_builtins(trust)}
    if meaning is not None:
        config[MEANING_KEY] = msgspec.to_builtins(meaning)
    file = folder / "config.json"
    try:
        write_atomically(
            file, msgspec.json.format(msgspec.json.encode(config), indent=2) + b"\n", private=False
        )
    except OSError as error:
        raise DependencyUnavailable(f"{file} cannot be written: {error.strerror}") from error


def _read_measured(folder: Path, key: str, kind: type[_Measured]) -> _Measured | None:
    found = _read_config(folder).get(key)
    if found is None:
        return None
    try:
        return msgspec.convert(found, kind)
    except (msgspec.ValidationError, InvalidInput) as error:
        raise InvalidInput(f"{folder / 'config.json'}: {key}: {error}") from error


def _read_config(folder: Path) -> dict[str, Any]:
    file = folder / "config.json"
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise InvalidInput(f"{file}: {error.strerror}: name a model folder") from error
    except msgspec.DecodeError as error:
        raise InvalidInput(f"{file} is not readable as JSON: {error}") from error


def export_onnx(folder: ModelFolder, precision: str) -> bytes:
    """An ONNX file of a causal network, under 2 GB. Raises: InvalidInput, ShapeMismatch."""
    from htfi.adapters.onnx.causal_graph import write_causal
    from htfi.adapters.onnx.graph import whole_model

    written = write_causal(folder.architecture, folder.weights, Precision(precision))
    return whole_model(written, folder.weights).SerializeToString()


def token_text(trace: GenerationTrace, named: Path | None = None) -> Callable[[int], str] | None:
    """The text of a trace's tokens, by the vocabulary of the model that wrote it: that of the folder `named`, or a
    shipped one; None where neither is at hand, for a record can be read without its models.

    Raises: InvalidInput where the named folder holds another model.
    """
    digest = trace.target.rpartition("@")[2]
    for path in (named,) if named is not None else (models.TARGET, models.DRAFT, *models.EARLIER):
        try:
            folder = ModelFolder.open(path)
            if digest and folder.digest.startswith(digest):
                return TokenText.of(Vocabulary(HuggingFaceTokenizer(folder.tokenizer_file)))
        except HtfiError:
            if named is not None:
                raise
    if named is not None:
        raise InvalidInput(
            f"{named} does not contain {trace.target}, which generated this answer: pass its folder with --target"
        )
    return None
