"""The numeric experts: the baselines in one file, the others one file each. A new one is a line in `EXPERTS`."""

from htfi.domain.errors import InvalidInput
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts.baselines import EwmaExpert, HistoricalSimulationExpert, RandomWalkExpert
from htfi.forecasting.experts.garch import GarchTExpert, GjrTExpert
from htfi.forecasting.experts.har import HarExpert, LogRangeHarExpert
from htfi.forecasting.experts.market_har import MarketHarExpert
from htfi.forecasting.experts.seasonal import SeasonalExpert
from htfi.forecasting.kinds import AUTO, expand
from htfi.forecasting.ports import Expert

EXPERTS = {
    expert.name: expert
    for expert in (
        EwmaExpert,
        GarchTExpert,
        GjrTExpert,
        HarExpert,
        HistoricalSimulationExpert,
        LogRangeHarExpert,
        MarketHarExpert,
        RandomWalkExpert,
        SeasonalExpert,
    )
}


def build_experts(config: ForecastConfig) -> tuple[Expert, ...]:
    """The experts that the settings name, fresh; for "auto" all that some kind of series has (`kinds`).

    Raises: InvalidInput for a name that none has.
    """
    names = expand(config.experts)
    unknown = [name for name in names if name not in EXPERTS]
    if unknown:
        raise InvalidInput(
            f"forecasting.experts: unknown {unknown}: the experts are {', '.join([AUTO, *sorted(EXPERTS)])}"
        )
    return tuple(EXPERTS[name](config) for name in names)
