"""Settings of the fidelity ladder: how much time each rung needs, and what counts as load or disagreement."""

from dataclasses import dataclass

from htfi.domain.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class FidelityConfig:
    """A rung is chosen only when the deadline leaves it its time. Load and divergence run 0–1.

    Divergence is a share: with `high_divergence` at 0.9 one opinion in ten counts as disagreement.

    After a moment is released, `deep_budget_ms` is for reading in depth what the numbers disagree with, each reading
    allowed `deep_ms`, and no bar's more than half its length.
    """

    edge_ms: float = 20.0
    speculative_ms: float = 80.0
    deep_ms: float = 2_000.0
    deep_budget_ms: float = 4_000.0
    high_load: float = 0.8
    high_divergence: float = 0.9

    def __post_init__(self) -> None:
        if not 0.0 < self.edge_ms <= self.speculative_ms <= self.deep_ms:
            raise InvalidInput("fidelity: need 0 < edge_ms <= speculative_ms <= deep_ms")
        if not 0.0 <= self.deep_budget_ms <= 3_600_000.0:
            raise InvalidInput("fidelity.deep_budget_ms must lie in 0..3600000 (an hour)")
        for name in ("high_load", "high_divergence"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise InvalidInput(f"fidelity.{name} must lie in 0..1, above 0, not {getattr(self, name)}")
