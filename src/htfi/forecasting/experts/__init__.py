"""The numeric experts, one file each. A new one is a file here and a line in `build_experts`."""

from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts.ewma import Ewma
from htfi.forecasting.experts.garch import GarchT, GjrT
from htfi.forecasting.experts.historical_simulation import HistoricalSimulation
from htfi.forecasting.experts.log_range_har import LogRangeHar
from htfi.forecasting.experts.random_walk import RandomWalk
from htfi.forecasting.ports import Expert

EXPERTS = {
    expert.name: expert for expert in (Ewma, GarchT, GjrT, HistoricalSimulation, LogRangeHar, RandomWalk)
}


def build_experts(config: ForecastConfig) -> tuple[Expert, ...]:
    """Every expert of this release, fresh."""
    return (Ewma(config), HistoricalSimulation(config), LogRangeHar(config), RandomWalk(config))
