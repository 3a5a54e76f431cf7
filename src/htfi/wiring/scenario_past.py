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
from htfi.forecasting.scenarios.past import Past
from htfi.wiring.ledger import DATABASE
from htfi.wiring.outputs import open_recorded

Array = NDArray[np.float64]

MAX_LEDGER_BYTES = 2 << 30
_MACRO = "macro_"


class _Subject(msgspec.Struct):
    """The little of a decision that the past needs; msgspec passes over the rest."""

    symbol: str
    interval: str
    as_of_ns: int
    last_price: float
    features: dict[str, float] = {}
    amends: str = ""


class _Released(msgspec.Struct):
    decision: _Subject


_RELEASED = msgspec.json.Decoder(_Released)
_WITHHELD = msgspec.json.Decoder(_Subject)


@dataclass(slots=True)
class Memory:
    """Filled with the decisions of a run in their order, amendments left out."""

    _closes: dict[str, tuple[list[int], list[float]]] = field(
        default_factory=dict[str, tuple[list[int], list[float]]]
    )
    macro: dict[str, list[tuple[int, float]]] = field(default_factory=dict[str, list[tuple[int, float]]])

    def note(self, told: Decision | _Subject) -> None:
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

    def past(self, series: str) -> Past:
        ends, closes = self._closes.get(series, ([], []))
        is_daily = bar_ns(series.rpartition("/")[2]) >= NS_PER_DAY
        return Past(np.array(ends, np.int64), np.array(closes, np.float64), is_daily)


def bar_ns(interval: str) -> int:
    """The length of a bar; 1 ns where it has none."""
    try:
        return parse_duration(interval)
    except InvalidInput:
        return 1


def read_memory(folder: Path, until_ns: int) -> Memory:
    """From a run's ledger, as far as its saved state goes.

    Raises: InvalidInput, DependencyUnavailable, IntegrityError.
    """
    memory, path = Memory(), folder / DATABASE
    if path.is_file() and path.stat().st_size > MAX_LEDGER_BYTES:
        raise DependencyUnavailable(f"{path} is larger than 2 GB: its past is not read; shocks do without it")
    with open_recorded(folder) as recorded:
        for index, line in enumerate(recorded.entries.lines()):
            told = _subject(line, f"{path}, entry {index}")
            if told.as_of_ns <= until_ns:
                memory.note(told)
    return memory


def _subject(line: bytes, where: str) -> _Subject:
    try:
        return _WITHHELD.decode(line) if is_withheld(line) else _RELEASED.decode(line).decision
    except msgspec.DecodeError as error:
        raise IntegrityError(f"{where}: is no decision ({error}): run again in a new folder") from error
