"""What a run or a file holds of its own past, for what-if: closes, forecasts that were met, macro values."""

from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.adapters.stores.decisions import is_withheld
from htfi.domain.decision import Decision, series_id
from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.domain.time import NS_PER_DAY, parse_duration
from htfi.forecasting.scenarios.history import PriceHistory
from htfi.wiring.ledger import DATABASE
from htfi.wiring.outputs import open_recorded

Array = NDArray[np.float64]

MAX_LEDGER_BYTES = 2 << 30
_MACRO = "macro_"


class _DecisionSummary(msgspec.Struct):
    """The little of a decision that the past needs; msgspec passes over the rest."""

    symbol: str
    interval: str
    as_of_ns: int
    last_price: float
    features: dict[str, float] = {}
    amends: str = ""


class _ReleasedSummary(msgspec.Struct):
    decision: _DecisionSummary


_RELEASED = msgspec.json.Decoder(_ReleasedSummary)
_WITHHELD = msgspec.json.Decoder(_DecisionSummary)


@dataclass(slots=True)
class RunHistory:
    """Filled with the decisions of a run in their order, amendments left out."""

    _closes: dict[str, tuple[list[int], list[float]]] = field(
        default_factory=dict[str, tuple[list[int], list[float]]]
    )
    macro: dict[str, list[tuple[int, float]]] = field(default_factory=dict[str, list[tuple[int, float]]])

    def add(self, told: Decision | _DecisionSummary) -> None:
        """Take in one decision."""
        if told.amends:
            return
        ends, closes = self._closes.setdefault(series_id(told.symbol, told.interval), ([], []))
        ends.append(told.as_of_ns)
        closes.append(told.last_price)
        for name, value in told.features.items():
            if name.startswith(_MACRO):
                values = self.macro.setdefault(name.removeprefix(_MACRO), [])
                if not values or values[-1][1] != value:
                    values.append((told.as_of_ns, value))

    def past(self, series: str) -> PriceHistory:
        ends, closes = self._closes.get(series, ([], []))
        is_daily = bar_length_ns(series.rpartition("/")[2]) >= NS_PER_DAY
        return PriceHistory(np.array(ends, np.int64), np.array(closes, np.float64), is_daily)


def bar_length_ns(interval: str) -> int:
    """The length of a bar; 1 ns where it has none."""
    try:
        return parse_duration(interval)
    except InvalidInput:
        return 1


def read_history(folder: Path, until_ns: int) -> RunHistory:
    """From a run's ledger, as far as its saved state goes.

    Raises: InvalidInput, DependencyUnavailable, IntegrityError.
    """
    memory, path = RunHistory(), folder / DATABASE
    if path.is_file() and path.stat().st_size > MAX_LEDGER_BYTES:
        raise DependencyUnavailable(f"{path} is larger than 2 GB: its past is not read; shocks do without it")
    with open_recorded(folder) as recorded:
        for index, line in enumerate(recorded.entries.lines()):
            told = _decode_summary(line, f"{path}, entry {index}")
            if told.as_of_ns <= until_ns:
                memory.add(told)
    return memory


def _decode_summary(line: bytes, where: str) -> _DecisionSummary:
    try:
        return _WITHHELD.decode(line) if is_withheld(line) else _RELEASED.decode(line).decision
    except msgspec.DecodeError as error:
        raise IntegrityError(f"{where}: is no decision ({error}): run again in a new folder") from error
