"""Where torch computes, and the way in for arrays. Trainer and network ask."""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from htfi.domain.errors import InvalidInput


def tensor(array: NDArray[Any], device: torch.device | None = None) -> Tensor:
    """The array as a tensor; on a CPU it shares the array's memory, unless that is read-only."""
    # torch warns of arrays that it could write to but must not; its own stub leaves the array untyped
    shared = torch.from_numpy(array if array.flags.writeable else array.copy())  # pyright: ignore[reportUnknownMemberType]
    return shared if device is None else shared.to(device)


def find_device(name: str) -> torch.device:
    """'auto' is the GPU where there is one. Raises: InvalidInput."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:  # torch built without CUDA asserts
        raise InvalidInput(f"device {name!r} is not to be had here: use cpu, cuda or auto") from error
    return device
