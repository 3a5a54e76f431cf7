"""Opens the encoder of news and its heads: the tuned one that ships in int8, or any BERT folder.

It is checked against its digest when it is opened, and loaded at its first text.
"""

import hashlib
import shutil
import tomllib
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from htfi import models
from htfi.adapters.native.sentence_encoder import NativeSentenceEncoder, serves
from htfi.adapters.onnx.sentence_encoder import OnnxSentenceEncoder, load_encoder, write_graph
from htfi.adapters.onnx.session import Precision, save_graph
from htfi.decoding.checkpoint.folder import CONFIG, TOKENIZER, ModelFolder, parse_architecture
from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.domain.file_digests import DigestFile, file_digest
from htfi.narrative.config import EncodingConfig
from htfi.narrative.encoding.heads import Heads
from htfi.narrative.ports import TextEncoder
from htfi.wiring.sentence_encoder import EncoderNetwork, SentenceEncoder

_FILES = (CONFIG, models.ENCODER_GRAPH, TOKENIZER)  # of a packed encoder


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
    expected = models.DIGESTS[models.FACTS]
    return packed_encoder(models.FACTS, models.FACTS_SOURCE, expected, config, digest_file)


def packed_encoder(
    folder: Path,
    name: str,
    expected: str,
    config: EncodingConfig,
    digest_file: DigestFile | None = file_digest,
) -> "SentenceEncoder":
    """An encoder that was written by `pack_encoder`, held to the digest that is expected. Raises: IntegrityError,
    DependencyUnavailable.
    """
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
    for name in _FILES:
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
