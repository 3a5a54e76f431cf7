"""Where torch computes. Trainer and network ask."""

import torch

from htfi.domain.errors import InvalidInput


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
