"""Settings of the fidelity ladder: how much time each rung needs, and what counts as load or disagreement."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import HOUR_MS, PositiveShare, check_bounds, setting


@dataclass(frozen=True, slots=True)
class FidelityConfig:
    """Time that each rung needs, and what counts as load or divergence."""

    edge_ms: Annotated[float, Meta(gt=0.0, le=HOUR_MS)] = setting(
        20.0, "time that the EDGE rung needs (draft model)"
    )
    speculative_ms: Annotated[float, Meta(gt=0.0, le=HOUR_MS)] = setting(
        80.0, "time that the SPECULATIVE rung needs (target model)"
    )
    deep_ms: Annotated[float, Meta(gt=0.0, le=HOUR_MS)] = setting(
        2_000.0, "time allowed for one reading in depth"
    )
    deep_budget_ms: Annotated[float, Meta(ge=0.0, le=HOUR_MS)] = setting(
        4_000.0, "time for readings in depth after each release"
    )
    high_load: PositiveShare = setting(0.8, "load from which a lower rung is chosen", "0–1")
    high_divergence: PositiveShare = setting(
        0.9, "rank of divergence from which an item is read in depth", "0–1"
    )

    def __post_init__(self) -> None:
        check_bounds("scheduling", self)
        if not self.edge_ms <= self.speculative_ms <= self.deep_ms:
            raise InvalidInput("scheduling: need edge_ms <= speculative_ms <= deep_ms")
