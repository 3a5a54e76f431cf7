"""A typed client of `htfi serve` (extra `[client]`), in two forms that do the same: `Client` and `AsyncClient`.

The service imports its bodies from here; httpx is loaded where a client is asked for.
"""

from typing import TYPE_CHECKING, Any

from htfi.client.bodies import (
    ChartBody,
    ExplanationBody,
    ForecastBody,
    ForecastPage,
    ForecastQuestion,
    Health,
    Horizon,
    PostedForecasts,
    ScenarioQuestion,
    SeriesBody,
    SeriesPage,
)
from htfi.client.calls import DecisionPage, ServiceProblem
from htfi.client.events import StreamedDecision
from htfi.domain.errors import require_extra

if TYPE_CHECKING:
    from htfi.client.service import AsyncClient, Client

__all__ = [
    "AsyncClient",
    "ChartBody",
    "Client",
    "DecisionPage",
    "ExplanationBody",
    "ForecastBody",
    "ForecastPage",
    "ForecastQuestion",
    "Health",
    "Horizon",
    "PostedForecasts",
    "ScenarioQuestion",
    "SeriesBody",
    "SeriesPage",
    "ServiceProblem",
    "StreamedDecision",
]


def __getattr__(name: str) -> Any:
    if name not in ("AsyncClient", "Client"):
        raise AttributeError(f"module 'htfi.client' has no attribute '{name}'")
    require_extra("htfi.client", "client", "httpx")
    from htfi.client import service

    return getattr(service, name)
