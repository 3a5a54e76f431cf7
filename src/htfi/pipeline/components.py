"""What the loop works with: the components of a run, and its context. Wiring builds both; `state` saves the first."""

from dataclasses import dataclass, field
from typing import Any

from htfi.decoding.prices import ScaledReturns
from htfi.forecasting.forecaster import Forecaster
from htfi.governance.config import PolicyConfig
from htfi.market.state import MarketState
from htfi.narrative.processor import NewsProcessor
from htfi.narrative.rationale.drivers import FeatureBaseline
from htfi.pipeline.config import PipelineConfig
from htfi.pipeline.inputs import InputChain
from htfi.pipeline.prepared_views import PreparedViews
from htfi.pipeline.view_cache import ViewCache
from htfi.scheduling.config import FidelityConfig


@dataclass(frozen=True, slots=True)
class Components:
    """The parts of a run that have state of their own."""

    market: MarketState
    forecaster: Forecaster
    views: ViewCache
    news: NewsProcessor
    typical_features: FeatureBaseline
    prepared: PreparedViews
    scaled_returns: ScaledReturns = field(default_factory=ScaledReturns)
    inputs: InputChain = field(default_factory=InputChain)
    band_widths: dict[str, float] = field(
        default_factory=dict[str, float]
    )  # series → its last 90% band, log return

    def state(self) -> dict[str, Any]:
        return {
            "market": self.market.state(),
            "forecaster": self.forecaster.state(),
            "desk": self.news.state(),
            "usual": self.typical_features.state(),
            "readings": self.views.state(),
            "preparing": self.prepared.state(),
            "scaled": self.scaled_returns.state(),
            "inputs": self.inputs.state(),
            "widths": dict(self.band_widths),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.market.restore(state["market"])
        self.forecaster.restore(state["forecaster"])
        self.news.restore(state["desk"])
        self.typical_features.restore(state["usual"])
        self.views.restore(state["readings"])
        self.prepared.restore(state["preparing"])
        self.scaled_returns.restore(state["scaled"])
        self.inputs.restore(state["inputs"])
        self.band_widths.clear()
        self.band_widths.update(state["widths"])


@dataclass(frozen=True, slots=True)
class RunContext:
    """What holds for the whole run: limits, and the versions that a decision records."""

    pipeline: PipelineConfig
    policy: PolicyConfig
    fidelity: FidelityConfig
    settings_digest: str
    models: dict[str, str]
