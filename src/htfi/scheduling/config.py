"""Settings of the fidelity ladder: how much time each rung needs, and what counts as load or disagreement."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import HOUR_MS, PositiveShare, check_bounds


@dataclass(frozen=True, slots=True)
class FidelityConfig:
    """A rung is chosen only when the deadline leaves it its time. Load and divergence run 0–1.

    Divergence is a share: with `high_divergence` at 0.9 one opinion in ten counts as disagreement.

    After a moment is released, `deep_budget_ms` is for reading in depth what the numbers disagree with, each reading
    allowed `deep_ms`, and no bar's more than half its length.
    """

    edge_ms: Annotated[float, Meta(gt=0.0, le=HOUR_MS)] = 20.0
    speculative_ms: Annotated[float, Meta(gt=0.0, le=HOUR_MS)] = 80.0
    deep_ms: Annotated[float, Meta(gt=0.0, le=HOUR_MS)] = 2_000.0
    deep_budget_ms: Annotated[float, Meta(ge=0.0, le=HOUR_MS)] = 4_000.0
    high_load: PositiveShare = 0.8
    high_divergence: PositiveShare = 0.9

    def __post_init__(self) -> None:
        check_bounds("scheduling", self)
        if not self.edge_ms <= self.speculative_ms <= self.deep_ms:
            raise InvalidInput("scheduling: need edge_ms <= speculative_ms <= deep_ms")
