"""What events of each kind have done to variance, learnt by `htfi_train` from staged data and shipped."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.domain.time import NS_PER_S

Array = NDArray[np.float64]

FILE = Path(__file__).with_name("priors.json")
GAP = "gap_"  # begins the kinds of gaps, which are of daily bars
_HOUR_NS = 3600 * NS_PER_S
_DAY_HOURS = 24.0
_SHORT_POWER = 0.6  # of an hour's excess variance the first L hours hold L^(1 − 0.6)
_VERSION_CHARS = 12  # of the digest of the file
_MIN_EXCESS = -0.6
_UNKNOWN_STRENGTH = 6.0  # events that a kind without a prior counts as without effect


@dataclass(frozen=True, slots=True, eq=False)
class KindPriors:
    """Shapes: log_factors [K, R, L] of scale; strength [K], the number of events that each counts for."""

    log_factors: Array
    strength: Array


class Priors:
    """Priors of kinds for each asset class, at the length of bars where they were learnt."""

    def __init__(self, table: Mapping[str, Any], version: str = "none") -> None:
        self._table, self.version = table, version

    def kinds(self, assets: str) -> Mapping[str, Any]:
        """What is known of an asset class, by kind."""
        return self._table.get(assets, {}).get("kinds", {})

    def quiet_days(self, assets: str) -> Mapping[str, float]:
        """The log factors of scale of an asset class' daily bars on `quiet_days.KINDS`."""
        return self._table.get(assets, {}).get("quiet_days", {})

    def quiet_hours(self, assets: str) -> Mapping[str, float]:
        """The log factors of scale of an asset class' bars within a day, by `quiet_hours.KIND`."""
        return self._table.get(assets, {}).get("quiet_hours", {})

    def log_factors(self, kinds: Sequence[str], assets: str, length_ns: int) -> KindPriors:
        """For bars of this length: the excess variance of an event is spread over the bar that holds it."""
        known: Mapping[str, Any] = self._table.get(assets, {})
        by_kind: Mapping[str, Any] = known.get("kinds", {})
        learnt_hours = float(known.get("bar_hours", 1.0))
        logs = np.zeros((len(kinds), 2, 2))
        strength = np.full(len(kinds), _UNKNOWN_STRENGTH)
        for place, kind in enumerate(kinds):
            entry = by_kind.get(kind)
            if entry is None:
                continue
            logs[place] = [[entry["own"], entry["own_next"]], [entry["other"], entry["other_next"]]]
            strength[place] = entry["strength"]
        at_length = _at_length(logs, length_ns / _HOUR_NS, learnt_hours)
        gaps = np.array([kind.startswith(GAP) for kind in kinds])
        return KindPriors(np.where(gaps[:, None, None], logs, at_length), strength)


def _at_length(logs: Array, hours: float, learnt_hours: float) -> Array:
    """Log factors learnt on bars of some hours as those of bars of others."""
    if hours == learnt_hours:
        return logs
    power = 1.0 if hours > learnt_hours else _SHORT_POWER
    spread = round((learnt_hours / hours) ** power, 12)
    excess = np.maximum(spread * (exact.exp(2.0 * logs) - 1.0), _MIN_EXCESS)
    scaled = 0.5 * exact.log(1.0 + excess)
    scaled[:, :, 1] *= 1.0 if hours < _DAY_HOURS else 0.0  # an hour's aftermath is not a day's
    return scaled


@lru_cache(maxsize=1)
def shipped() -> Priors:
    """Those of the release."""
    data = FILE.read_bytes()
    return Priors(json.loads(data), hashlib.sha256(data).hexdigest()[:_VERSION_CHARS])
