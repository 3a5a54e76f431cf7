"""The numeric experts, one file each. A new one is a file here and a line in `build_experts`."""

from htfi.domain.errors import InvalidInput
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts.ewma import Ewma
from htfi.forecasting.experts.garch import GarchT, GjrT
from htfi.forecasting.experts.har import Har
from htfi.forecasting.experts.historical_simulation import HistoricalSimulation
from htfi.forecasting.experts.log_range_har import LogRangeHar
from htfi.forecasting.experts.market_har import MarketHar
from htfi.forecasting.experts.random_walk import RandomWalk
from htfi.forecasting.experts.seasonal import Seasonal
from htfi.forecasting.ports import Expert

EXPERTS = {
    expert.name: expert
    for expert in (
        Ewma,
        GarchT,
        GjrT,
        Har,
        HistoricalSimulation,
        LogRangeHar,
        MarketHar,
        RandomWalk,
        Seasonal,
    )
}


def build_experts(config: ForecastConfig) -> tuple[Expert, ...]:
    """The experts that the settings name, fresh. Raises: InvalidInput for a name that none has."""
    unknown = [name for name in config.experts if name not in EXPERTS]
    if unknown:
        raise InvalidInput(
            f"forecasting.experts: unknown {unknown}: the experts are {', '.join(sorted(EXPERTS))}"
        )
    return tuple(EXPERTS[name](config) for name in config.experts)
