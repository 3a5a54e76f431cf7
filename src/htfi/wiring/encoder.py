"""Opens the encoder of news and its heads: the tuned one that ships in int8, or any BERT folder.

It is checked against its digest when it is opened, and loaded at its first text.
"""

import hashlib
import os
import shutil
import tomllib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from htfi import models
from htfi.adapters.native.sentence_encoder import NativeSentenceEncoder, serves
from htfi.adapters.onnx.sentence_encoder import OnnxSentenceEncoder, load_encoder, write_graph
from htfi.adapters.onnx.session import Precision, save_graph
from htfi.decoding.checkpoint.folder import CONFIG, TOKENIZER, Architecture, ModelFolder, parse_architecture
from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.domain.file_digests import DigestFile, file_digest
from htfi.narrative.config import MAX_TOKENS, EncodingConfig
from htfi.narrative.encoding.heads import Heads
from htfi.narrative.ports import TextEmbeddings, TextEncoder

if TYPE_CHECKING:
    from htfi.adapters.tokenizer.hugging_face import HuggingFaceTokenizer

_CHARS_PER_TOKEN = 16  # a text is cut to so many before it is split: more than words of any language need
_MAX_KEPT = 1_024  # texts whose tokens are kept: a batch's, until their facts are read
_FIRST_PART_TOKENS, _PART_TOKENS = 256, 1_024  # of texts that are read while others are used
# int8-all: weights, activations and the table of words. In "int8", as older runs name it, the table was fp32.
_PRECISION_NAMES = {Precision.INT8: "int8-all", Precision.FP32: "fp32"}


class EncoderNetwork(Protocol):
    """A network that reads texts of ids."""

    def read(
        self, texts: Sequence[Sequence[int]], threads: int = 1
    ) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
        """Points of length 1 [n, D] and states n × [T, D]. Raises: InvalidInput, DependencyUnavailable."""
        ...


def open_encoder(
    config: EncodingConfig, digest_file: DigestFile | None = file_digest
) -> "SentenceEncoder | None":
    """The encoder that is configured; None where there is to be none.

    Without `digest_file` the shipped one is held to its digest when it reads its first text.
    Raises: IntegrityError, when the shipped files are not those that were released; InvalidInput, when a folder that
    is named holds no encoder, or the shipped one is asked for another precision than int8.
    """
    if config.model == "none":
        return None
    if config.model in ("auto", "heads"):
        return shipped_encoder(config, digest_file)
    return folder_encoder(Path(config.model), config, digest_file or file_digest)


def shipped_encoder(
    config: EncodingConfig, digest_file: DigestFile | None = file_digest
) -> "SentenceEncoder":
    """The encoder tuned for facts, in int8. Raises: IntegrityError, InvalidInput, DependencyUnavailable."""
    if config.precision != Precision.INT8:
        raise InvalidInput(
            f"encoding.precision is {config.precision}, and the shipped encoder has int8 weights only: "
            "name a folder with the full weights as encoding.model"
        )
    return packed_encoder(models.FACTS, models.FACTS_SOURCE, config, digest_file)


def packed_encoder(
    folder: Path, name: str, config: EncodingConfig, digest_file: DigestFile | None = file_digest
) -> "SentenceEncoder":
    """An encoder that ships as a written graph, held to its digest. Raises: IntegrityError, DependencyUnavailable."""
    expected = models.DIGESTS[folder]
    if digest_file is not None:
        _check_digest(folder, expected, digest_file)
    architecture = parse_architecture((folder / CONFIG).read_bytes(), str(folder / CONFIG))

    def network(_: Callable[[str], list[int]]) -> EncoderNetwork:
        if digest_file is None:
            _check_digest(folder, expected, file_digest)
        file = folder / models.ENCODER_GRAPH
        written = load_encoder(file)
        if serves(architecture):
            return NativeSentenceEncoder(architecture, written.content, written.computed, expected)
        return OnnxSentenceEncoder.of_written(written, file, architecture, expected)

    source = f"{name}@{expected[:12]}"
    return SentenceEncoder(source, architecture, folder / TOKENIZER, config, network)


def _check_digest(folder: Path, expected: str, digest_file: DigestFile) -> None:
    found = files_digest(folder, digest_file)
    if found != expected:
        raise IntegrityError(
            f"{folder} was changed: digest {found[:12]}…, not {expected[:12]}…; reinstall htfi"
        )


def folder_encoder(
    path: Path, config: EncodingConfig, digest_file: DigestFile = file_digest
) -> "SentenceEncoder":
    """An encoder from a model folder. Raises: InvalidInput, DependencyUnavailable."""
    folder = ModelFolder.open(path, digest_file)
    if folder.architecture.is_causal:
        raise InvalidInput(f"{path} holds a causal network; name a BERT encoder to read with")
    precision = Precision(config.precision)

    def network(tokens: Callable[[str], list[int]]) -> OnnxSentenceEncoder:
        return OnnxSentenceEncoder.of_folder(folder, precision, _calibration_ids(precision, tokens))

    name = path.parent.name if path.name == "model" else path.name
    source = f"{name}@{folder.digest[:12]}"
    return SentenceEncoder(source, folder.architecture, folder.tokenizer_file, config, network)


def pack_encoder(folder: Path, out: Path) -> str:
    """Write the int8 graph of a model folder's encoder with its vocabulary, as it ships; the digest of the files.

    Raises: InvalidInput, DependencyUnavailable.
    """
    opened = ModelFolder.open(folder)
    encoder = folder_encoder(folder, EncodingConfig(model=str(folder)))
    usual = _calibration_ids(Precision.INT8, encoder.tokens)
    out.mkdir(parents=True, exist_ok=True)
    save_graph(out / models.ENCODER_GRAPH, write_graph(opened, Precision.INT8, usual))
    for name in (CONFIG, TOKENIZER):
        shutil.copy(folder / name, out / name)
    return files_digest(out)


def files_digest(folder: Path, digest_file: DigestFile = file_digest) -> str:
    """SHA-256 (hex) over the files of a packed encoder. Raises: IntegrityError, for one that is missing."""
    whole = hashlib.sha256()
    for name in (CONFIG, models.ENCODER_GRAPH, TOKENIZER):
        try:
            whole.update(f"{name}\0{digest_file(folder / name)}\n".encode())
        except FileNotFoundError as error:
            raise IntegrityError(f"{folder / name} is missing: reinstall htfi") from error
        except OSError as error:
            raise DependencyUnavailable(f"{folder / name} cannot be read: {error.strerror}") from error
    return whole.hexdigest()


def _calibration_ids(precision: Precision, tokens: Callable[[str], list[int]]) -> list[list[int]]:
    """Texts of many kinds, on which the int8 encoder calibrates the range of its activations; none in float32."""
    if precision is not Precision.INT8:
        return []
    table = files("htfi.narrative.encoding").joinpath("calibration_texts.toml").read_text(encoding="utf-8")
    return [tokens(text) for text in tomllib.loads(table)["texts"]]


class SentenceEncoder:
    """Texts to points: tokens, states, their mean over the tokens, length 1; none is padded.

    `source` names the weights, `version` also the precision and the bound on tokens.
    """

    def __init__(
        self,
        source: str,
        architecture: Architecture,
        tokenizer_file: Path,
        config: EncodingConfig,
        open_network: Callable[[Callable[[str], list[int]]], EncoderNetwork],
    ) -> None:
        self._tokenizer_file = tokenizer_file
        self._open_network = open_network
        self._max_tokens = min(MAX_TOKENS, architecture.max_positions)
        self._threads = config.threads or os.cpu_count() or 1
        self.size = architecture.hidden_size
        self.version = f"{source}:{_PRECISION_NAMES[Precision(config.precision)]}:{self._max_tokens}"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[n, D]. Raises: DependencyUnavailable, InvalidInput."""
        return self.read(texts).points

    def read(self, texts: Sequence[str]) -> TextEmbeddings:
        """Points [n, D] and states n × [T, D]. Raises: DependencyUnavailable, InvalidInput."""
        if not texts:
            return TextEmbeddings(np.zeros((0, self.size), np.float32), [])
        return TextEmbeddings(*self._network.read([self.tokens(text) for text in texts], self._threads))

    def read_parts(self, texts: Sequence[str]) -> Iterator[TextEmbeddings]:
        """As `read`, in parts. Where there is a second core the next part is read on it while the last one is used.

        Raises: DependencyUnavailable, InvalidInput.
        """
        tokens = [self.tokens(text) for text in texts]
        parts = _parts([len(ids) for ids in tokens])
        # The general engine asks for the interpreter too often: it gains nothing from it.
        if self._threads < 2 or len(parts) < 2 or not isinstance(self._network, NativeSentenceEncoder):
            yield self.read(texts)
            return
        with ThreadPoolExecutor(1) as pool:
            waiting = deque(parts)
            ahead = pool.submit(self._network.read, tokens[waiting.popleft()])
            while waiting:
                found = ahead.result()
                ahead = pool.submit(self._network.read, tokens[waiting.popleft()])
                yield TextEmbeddings(*found)
            yield TextEmbeddings(*ahead.result())

    def product_kernel(self) -> Callable[[int], None] | None:
        """The integer products of a pass over so many tokens alone, for a benchmark's floor; None where the general
        engine reads. Raises: DependencyUnavailable.
        """
        network = self._network
        return network.multiply if isinstance(network, NativeSentenceEncoder) else None

    def tokens(self, text: str) -> list[int]:
        """The ids of a text between [CLS] and [SEP], cut to the bound."""
        inner, _ = self._encoded(text[: _CHARS_PER_TOKEN * self._max_tokens])
        return [self._cls_token, *inner[: self._max_tokens - 2], self._sep_token]

    def spans(self, text: str) -> NDArray[np.int64]:
        """Where the tokens of `tokens` stand in the text, in characters, [T, 2]; [CLS] and [SEP] at (0, 0)."""
        _, inner = self._encoded(text[: _CHARS_PER_TOKEN * self._max_tokens])
        return np.array([(0, 0), *inner[: self._max_tokens - 2], (0, 0)], np.int64)

    @cached_property
    def _encoded(self) -> Callable[[str], tuple[list[int], list[tuple[int, int]]]]:
        """Ids and spans of a text; those of the last texts are kept, as spans are asked for after ids."""
        return lru_cache(maxsize=_MAX_KEPT)(self._tokenizer.encode_with_spans)

    @cached_property
    def _network(self) -> EncoderNetwork:
        return self._open_network(self.tokens)

    @cached_property
    def _tokenizer(self) -> "HuggingFaceTokenizer":
        from htfi.adapters.tokenizer.hugging_face import HuggingFaceTokenizer  # late: at the first text

        return HuggingFaceTokenizer(self._tokenizer_file)

    @cached_property
    def _cls_token(self) -> int:
        return self._special_token("[CLS]")

    @cached_property
    def _sep_token(self) -> int:
        return self._special_token("[SEP]")

    def _special_token(self, name: str) -> int:
        found = self._tokenizer.special(name)
        if found is None:
            raise InvalidInput(f"{self._tokenizer_file}: the vocabulary has no {name}; name a BERT encoder")
        return found


def _parts(lengths: Sequence[int]) -> list[slice]:
    """Texts of these numbers of tokens in parts, the first a small one: nothing else is done while it is read."""
    parts: list[slice] = []
    start = tokens = 0
    for place, length in enumerate(lengths):
        if tokens and tokens + length > (_PART_TOKENS if parts else _FIRST_PART_TOKENS):
            parts.append(slice(start, place))
            start, tokens = place, 0
        tokens += length
    return [*parts, slice(start, len(lengths))]


def open_heads() -> Heads:
    """The shipped heads, held to their digest. Raises: IntegrityError, InvalidInput."""
    return Heads.load(models.HEADS, models.DIGESTS[models.HEADS])


def heads_for(encoder: TextEncoder | None) -> Heads | None:
    """The shipped heads, where they stand on this encoder; None for another, whose points they cannot read.

    Raises: IntegrityError, InvalidInput.
    """
    if encoder is None or models.HEADS not in models.DIGESTS:
        return None
    heads = open_heads()
    return heads if _weights(heads.encoder) == _weights(encoder.version) else None


def _weights(version: str) -> str:
    """Name and digest alone: heads read what another precision of the same weights says."""
    return version.partition(":")[0]
