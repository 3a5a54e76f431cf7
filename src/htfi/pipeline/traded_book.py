"""The book that a run trades: what is forecast of each instrument, what is held, and what is wanted of it."""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from htfi.domain.errors import InvalidInput
from htfi.domain.time import parse_duration
from htfi.execution.config import TradingConfig
from htfi.execution.gate.state import GateState
from htfi.execution.instruments import NANOS
from htfi.execution.sizing import Array, SizingInput, joint_outcomes, outcomes_of, target_weights
from htfi.execution.strategies import directions
from htfi.forecasting.joint.history import NormalScores
from htfi.pipeline.decided import DecidedSeries

SESSION_S = 6.5 * 3600  # of a trading day
DAYS_A_YEAR = 252


@dataclass(slots=True)
class KnownForecast:
    """The newest forecast of an instrument that is traded."""

    interval: str
    returns: Array
    years: float
    price: float


class TradedBook:
    """Forecasts in, target positions in lots out."""

    def __init__(self, config: TradingConfig, state: GateState, row: int, levels: Sequence[float]) -> None:
        """`state` has the positions and the instruments' grids; `row` is the horizon's in a forecast's quantiles."""
        self._config, self._state = config, state
        self._row, self._levels = row, levels
        self.known: dict[str, KnownForecast] = {}
        self.surprises: Callable[[Sequence[str]], NormalScores] | None = None
        self._closes: dict[str, deque[float]] = {}  # under a strategy, as far back as it looks
        self._num_closes: dict[str, int] = {}

    def note(self, symbol: str, interval: str, decided: DecidedSeries) -> None:
        """The newest forecast of an instrument."""
        returns = outcomes_of(self._levels, decided.quantiles[self._row])
        years = self._config.horizon_bars * _bar_years(interval)
        self.known[symbol] = KnownForecast(interval, returns, years, decided.last_price)

    def mean_in_sigmas(self, symbol: str, times: float) -> float:
        """So many times the forecast's mean, in its standard deviations; 0 where it has none."""
        returns = self.known[symbol].returns
        sigma = float(returns.std())
        return times * float(returns.mean()) / sigma if sigma > 0 else 0.0

    def is_due(self, symbol: str, decided: DecidedSeries) -> bool:
        """Whether a decision may change the position: under a strategy those on every so many closed bars."""
        if self._config.strategy == "forecast":
            return True
        if decided.is_between_bars or decided.amends:
            return False
        path = self._closes.setdefault(symbol, deque(maxlen=self._config.lookback_bars + 1))
        path.append(decided.last_price)
        self._num_closes[symbol] = num = self._num_closes.get(symbol, 0) + 1
        return len(path) > self._config.lookback_bars and num % self._config.rebalance_bars == 0

    def follows(self, symbol: str, interval: str) -> bool:
        """Whether a series is the one that its instrument is traded by: the first that was forecast."""
        known = self.known.get(symbol)
        return known is None or known.interval == interval

    def targets(self, due: Collection[str]) -> dict[str, int]:
        """Lots wanted of each instrument that is due; the others count in the book as they are."""
        symbols = list(self.known)
        inputs = [
            SizingInput(symbol, known.returns, known.years, self._weight(symbol))
            for symbol, known in self.known.items()
        ]
        if self._config.strategy != "forecast":
            sigmas = {one.symbol: one.sigma for one in inputs}
            chosen = directions(self._config.strategy, self._closes, sigmas, self._config.lookback_bars)
            inputs = [replace(one, direction=chosen.get(one.symbol, 0.0)) for one in inputs]
        weights = target_weights(inputs, self._config, lambda: self._joint_outcomes(inputs))
        found: dict[str, int] = {}
        for symbol, weight in zip(symbols, weights.tolist(), strict=True):
            if symbol in due:
                found[symbol] = int(weight * self._config.capital / self._lot_value(symbol))
        return found

    def _joint_outcomes(self, inputs: Sequence[SizingInput]) -> Array | None:
        """Of the whole book, where its series have one interval: others have no instants in common."""
        if self.surprises is None or len({known.interval for known in self.known.values()}) > 1:
            return None
        series = [f"{symbol}/{known.interval}" for symbol, known in self.known.items()]
        return joint_outcomes(inputs, self.surprises(series).scores, self._config.shortfall_level)

    def _weight(self, symbol: str) -> float:
        return self.position(symbol) * self._lot_value(symbol) / self._config.capital

    def _lot_value(self, symbol: str) -> float:
        instrument = self._state.instruments[symbol]
        ticks = max(1, instrument.nearest_ticks(self.known[symbol].price))
        return instrument.value(ticks, 1) / NANOS

    def position(self, symbol: str) -> int:
        return self._state.positions.get((self._config.account, symbol), 0)


def _bar_years(interval: str) -> float:
    """The length of a bar in years of trading time; of bars by volume or money a trading day."""
    try:
        seconds = parse_duration(interval) / 1e9
    except InvalidInput:
        return 1 / DAYS_A_YEAR
    if seconds >= 86_400:
        return max(1.0, round(seconds / 86_400 * 5 / 7)) / DAYS_A_YEAR
    return seconds / SESSION_S / DAYS_A_YEAR
