"""What the loop works with: the rooms' states, and the terms of the run. Wiring fills both; `state` saves the first."""

from dataclasses import dataclass, field
from typing import Any

from htfi.decoding.prices import ScaledReturns
from htfi.forecasting.forecaster import Forecaster
from htfi.governance.config import PolicyConfig
from htfi.market.state import Market
from htfi.narrative.desk import Desk
from htfi.narrative.usual import Usual
from htfi.pipeline.config import PipelineConfig
from htfi.pipeline.inputs import InputChain
from htfi.pipeline.preparing import Preparing
from htfi.pipeline.reading import Readings
from htfi.scheduling.config import FidelityConfig


@dataclass(frozen=True, slots=True)
class Rooms:
    """Every room's state, each behind its own door."""

    market: Market
    forecaster: Forecaster
    readings: Readings
    desk: Desk
    usual: Usual
    preparing: Preparing
    scaled: ScaledReturns = field(default_factory=ScaledReturns)
    inputs: InputChain = field(default_factory=InputChain)
    widths: dict[str, float] = field(
        default_factory=dict[str, float]
    )  # series → its last 90% band, log return

    def state(self) -> dict[str, Any]:
        return {
            "market": self.market.state(),
            "forecaster": self.forecaster.state(),
            "desk": self.desk.state(),
            "usual": self.usual.state(),
            "readings": self.readings.state(),
            "preparing": self.preparing.state(),
            "scaled": self.scaled.state(),
            "inputs": self.inputs.state(),
            "widths": dict(self.widths),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.market.restore(state["market"])
        self.forecaster.restore(state["forecaster"])
        self.desk.restore(state["desk"])
        self.usual.restore(state["usual"])
        self.readings.restore(state["readings"])
        self.preparing.restore(state["preparing"])
        self.scaled.restore(state["scaled"])
        self.inputs.restore(state["inputs"])
        self.widths.clear()
        self.widths.update(state["widths"])


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for the whole run: limits, and what a decision says of its maker."""

    pipeline: PipelineConfig
    policy: PolicyConfig
    fidelity: FidelityConfig
    settings_digest: str
    models: dict[str, str]
