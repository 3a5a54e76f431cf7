"""One Hugging Face folder on disk: architecture, weights, tokenizer file and digest. Wiring opens it for adapters."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from htfi.decoding.checkpoint.architecture import Architecture, parse_architecture
from htfi.decoding.checkpoint.weights import CheckpointWeights, open_weights
from htfi.domain.errors import DependencyUnavailable, InvalidInput

CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class ModelFolder:
    """A model on disk. Chat templates and generation settings are not read."""

    path: Path
    architecture: Architecture
    weights: CheckpointWeights

    @classmethod
    def open(cls, path: Path) -> "ModelFolder":
        """Read config.json and the headers of the weights.

        Raises: InvalidInput if the folder or one of its files is missing, damaged or of an unknown architecture.
        """
        if not path.is_dir():
            raise InvalidInput(
                f"{path} is no folder: name a model folder with {CONFIG} and safetensors weights"
            )
        config = path / CONFIG
        try:
            content = config.read_bytes()
        except FileNotFoundError as error:
            raise InvalidInput(f"{path} holds no {CONFIG}: name a Hugging Face model folder") from error
        except OSError as error:
            raise DependencyUnavailable(f"{config} cannot be read: {error}") from error
        return cls(path, parse_architecture(content, str(config)), open_weights(path))

    @property
    def tokenizer_file(self) -> Path:
        """Path of tokenizer.json. Raises: InvalidInput if the folder has none."""
        file = self.path / TOKENIZER
        if not file.is_file():
            raise InvalidInput(f"{self.path} holds no {TOKENIZER}: save the model's fast tokenizer there")
        return file

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over config.json, the weights' files and tokenizer.json, if present."""
        names = [CONFIG, *(file.name for file in self.weights.files)]
        if (self.path / TOKENIZER).is_file():
            names.append(TOKENIZER)
        whole = hashlib.sha256()
        for name in names:
            whole.update(f"{name}\0{_file_digest(self.path / name)}\n".encode())
        return whole.hexdigest()


def _file_digest(file: Path) -> str:
    digest = hashlib.sha256()
    try:
        with file.open("rb") as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise DependencyUnavailable(f"{file} cannot be read: {error}") from error
    return digest.hexdigest()
