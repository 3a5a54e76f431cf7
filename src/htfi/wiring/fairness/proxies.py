"""How well what is seen of a decision or a forecast predicts who it is about."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from htfi.governance.fairness.findings import NOT_REPORTED, Correction, adjust
from htfi.governance.fairness.proxies import ProxyFigure, proxy_figure


def proxies_of(
    columns: NDArray[np.float64],
    groups: Mapping[str, Sequence[str]],
    units: Mapping[str, Sequence[str]],
    correction: Correction,
) -> list[ProxyFigure]:
    found = [
        proxy_figure(attribute, group, columns, labels, units[attribute])
        for attribute, labels in groups.items()
        for group in _predicted(labels)
    ]
    adjusted = adjust([one.p for one in found], correction)
    return [replace(one, adjusted_p=p) for one, p in zip(found, adjusted, strict=True)]


def _predicted(labels: Sequence[str]) -> list[str]:
    """The groups to predict; of two, the rarer alone: the other is its opposite."""
    groups = sorted(set(labels) - {NOT_REPORTED})
    return groups if len(groups) != 2 else [min(groups, key=list(labels).count)]
