"""What a training run leaves on disk: checkpoint, log, model folders with their cards. The training loop calls it."""

import io
import pickle
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from torch import Tensor

from htfi import __version__
from htfi.adapters.torch.llama import Llama
from htfi.decoding.checkpoint.folder import config_json
from htfi.decoding.checkpoint.weights import write_safetensors
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.files import write_atomically
from htfi_train.torch.config import TrainingConfig
from htfi_train.torch.pair import TargetDraftPair

TARGET_FOLDER, DRAFT_FOLDER = "mini-target", "mini-draft"
CHECKPOINT, LOG = "checkpoint.pt", "training.jsonl"

_CHANGEABLE_SETTINGS = (
    "minutes", "tokens", "device", "threads", "checkpoint_every_s", "log_every_s",
    "target_rate", "draft_rate", "distillation", "warmup", "decay", "floor", "clip",
)  # fmt: skip


class TrainingProgress(msgspec.Struct, frozen=True):
    """How far a run has come."""

    step: int = 0
    tokens: int = 0
    elapsed_s: float = 0.0
    pool: int = 0
    batch: int = 0


def open_output(out: Path) -> None:
    """Make the folder and see that it takes a file. Raises: DependencyUnavailable."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / LOG).open("ab").close()
    except OSError as error:
        raise _unwritable(out, error) from error


def save_checkpoint(out: Path, pair: TargetDraftPair, progress: TrainingProgress, vocab_size: int) -> None:
    """Replace the checkpoint at once; a crash while writing leaves the one before. Raises: DependencyUnavailable."""
    buffer = io.BytesIO()
    bound = {"config": _fixed_settings(pair.config, vocab_size), "standing": msgspec.to_builtins(progress)}
    torch.save({**pair.state(), **bound}, buffer)
    _write(out / CHECKPOINT, buffer.getbuffer())


def load_checkpoint(out: Path, pair: TargetDraftPair, vocab_size: int) -> TrainingProgress:
    """Continue from the checkpoint in `out`, if there is one.

    Raises: InvalidInput, when it is damaged or of a run with other models or other data.
    """
    path = out / CHECKPOINT
    if not path.exists():
        return TrainingProgress()
    try:
        content = io.BytesIO(path.read_bytes())
    except OSError as error:
        raise DependencyUnavailable(f"{path} cannot be read: {error.strerror}") from error
    try:
        state: dict[str, Any] = torch.load(content, map_location=pair.device, weights_only=True)
        same = state["config"] == _fixed_settings(pair.config, vocab_size)
        progress = msgspec.convert(state["standing"], TrainingProgress)
        if same:
            pair.load(state)
    except (
        OSError,
        RuntimeError,
        EOFError,
        KeyError,
        ValueError,
        TypeError,
        pickle.UnpicklingError,
    ) as error:
        raise InvalidInput(f"{path} is damaged: remove it to begin again") from error
    if not same:
        raise InvalidInput(
            f"{path} belongs to a run with other sizes, seed, batches or vocabulary: name another folder, or remove it"
        )
    return progress


def _fixed_settings(config: TrainingConfig, vocab_size: int) -> str:
    """The settings that a run cannot change on the way, as text."""
    settings = msgspec.to_builtins(config)
    kept = {key: value for key, value in settings.items() if key not in _CHANGEABLE_SETTINGS}
    return msgspec.json.encode({**kept, "vocab_size": vocab_size}, order="sorted").decode()


def rewind_log(out: Path, progress: TrainingProgress) -> None:
    """Drop the lines of steps after the checkpoint: they are made again."""
    path = out / LOG
    try:
        kept = [line for line in path.read_bytes().splitlines() if _step(line) <= progress.step]
        _write(path, b"".join(line + b"\n" for line in kept))
    except OSError as error:
        raise _unwritable(out, error) from error


def _step(line: bytes) -> float:
    try:
        return float(msgspec.json.decode(line)["step"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return float("inf")  # a line cut short by a crash


def append_log(out: Path, entry: Mapping[str, object]) -> None:
    """Raises: DependencyUnavailable."""
    try:
        with (out / LOG).open("ab") as file:
            file.write(msgspec.json.encode(entry) + b"\n")
    except OSError as error:
        raise _unwritable(out, error) from error


def export_pair(
    out: Path, pair: TargetDraftPair, tokenizer_file: Path, sample: Tensor, facts: Mapping[str, object]
) -> dict[str, float]:
    """Write both model folders in float16 with cards that hold `facts`.

    Gives the largest change of a logit on `sample` (ids [B, T]) by rounding, by folder. Raises:
    DependencyUnavailable.
    """
    return {
        name: write_model_folder(out / name, network, tokenizer_file, sample, {"model": name, **facts})
        for name, network in ((TARGET_FOLDER, pair.target), (DRAFT_FOLDER, pair.draft))
    }


def write_model_folder(
    folder: Path, network: Llama, tokenizer_file: Path, sample: Tensor, facts: Mapping[str, object]
) -> float:
    """Write one model folder in float16, with a card; the largest change of a logit on `sample` by rounding.

    Raises: DependencyUnavailable.
    """
    half = {key: value.detach().cpu().half() for key, value in network.state_dict().items()}
    change = _rounding_error(network, half, sample)
    card = {
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "weights_dtype": "float16",
        "largest_logit_change_by_rounding": change,
        **facts,
        "versions": {
            "htfi": __version__,
            "torch": str(torch.__version__),
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(tokenizer_file, folder / "tokenizer.json")
    except OSError as error:
        raise _unwritable(folder, error) from error
    _write(folder / "config.json", config_json(network.sizes))
    write_safetensors(folder / "model.safetensors", {key: value.numpy() for key, value in half.items()})
    _write(folder / "card.json", msgspec.json.format(msgspec.json.encode(card), indent=2) + b"\n")
    return change


@torch.no_grad()
def _rounding_error(network: Llama, half: Mapping[str, Tensor], sample: Tensor) -> float:
    rounded = Llama(network.sizes)
    rounded.load_state_dict({key: value.float() for key, value in half.items()})
    exact = Llama(network.sizes)
    exact.load_state_dict({key: value.cpu() for key, value in network.state_dict().items()})
    ids = sample.cpu()
    return float((exact.hidden(ids) @ exact.head.T - rounded.hidden(ids) @ rounded.head.T).abs().max())


def _write(path: Path, data: bytes | memoryview) -> None:
    try:
        write_atomically(path, data, private=False)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> DependencyUnavailable:
    return DependencyUnavailable(
        f"{path} cannot be written: {error.strerror}; free some disk space or name another folder, then run the same "
        "command again to resume from the last checkpoint"
    )
