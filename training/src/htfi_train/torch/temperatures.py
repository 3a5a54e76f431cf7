"""The temperature under which known labels are likeliest."""

import numpy as np
from torch import Tensor, nn

_TEMPERATURES = np.geomspace(0.5, 4.0, 43)


def likeliest_temperature(logits: Tensor, targets: Tensor) -> float:
    """Of logits [n, labels] and the places of the labels [n]."""
    losses = [float(nn.functional.cross_entropy(logits / float(one), targets)) for one in _TEMPERATURES]
    return round(float(_TEMPERATURES[int(np.argmin(losses))]), 3)
