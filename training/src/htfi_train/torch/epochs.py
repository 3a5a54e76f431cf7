"""What a training by epochs leaves on disk to go on from, and the averaged weights that it ships."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from htfi.domain.files import write_atomically


class Continued(Protocol):
    """A part of a training whose state is kept: weights, optimizer, schedule."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any: ...


def save_epoch(file: Path, parts: Mapping[str, Continued], epoch: int, **more: Any) -> None:
    """Replace the checkpoint at once by the states of the parts after so many epochs."""
    file.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    states = {name: part.state_dict() for name, part in parts.items()}
    torch.save({**states, "epoch": epoch, **more}, buffer)
    write_atomically(file, buffer.getvalue(), private=False)


def resume_epoch(file: Path, parts: Mapping[str, Continued]) -> dict[str, Any] | None:
    """The checkpoint, its states taken into the parts; None where there is none."""
    if not file.exists():
        return None
    state: dict[str, Any] = torch.load(file, weights_only=True)
    for name, part in parts.items():
        part.load_state_dict(state[name])
    return state


@torch.no_grad()
def draw_average(averaged: nn.Module, newest: nn.Module, keep: float) -> None:
    """Move averaged weights towards the newest; `keep` is the share that stays."""
    for mean, value in zip(averaged.parameters(), newest.parameters(), strict=True):
        mean.lerp_(value, 1.0 - keep)
