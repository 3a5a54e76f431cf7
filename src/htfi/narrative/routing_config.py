"""Settings of the router: what an item must be worth for a reader to look at it, and what is at stake."""

from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import Share, check_bounds


@dataclass(frozen=True, slots=True)
class RoutingConfig:
    """Shares run 0–1; an item's worth is relevance · novelty · (½ + ½ position).

    What comes with symbols, or names one of the run's, is at least `tagged_relevance` relevant, whatever a head says.
    Below `draft_worth` the encoder's scores are all that is made of an item, below `target_worth` the draft's view;
    from `frontier_worth` on a frontier model is asked after the release, where one is wired: each time is reckoned
    `frontier_cents`, as long as `frontier_budget_cents` of the run last. `positions` are the shares of what may be at
    stake, by symbol; a symbol that is not named has `position`.
    """

    min_relevance: Share = 0.2
    tagged_relevance: Share = 0.5
    min_novelty: Share = 0.05
    draft_worth: Share = 0.15
    target_worth: Share = 0.3
    frontier_worth: Share = 0.9
    position: Share = 1.0
    positions: dict[str, Share] = field(default_factory=dict[str, float])
    frontier_cents: Annotated[float, Meta(gt=0.0, le=1e9)] = 1.0
    frontier_budget_cents: Annotated[float, Meta(ge=0.0, le=1e9)] = 100.0

    def __post_init__(self) -> None:
        check_bounds("routing", self)
        if not self.draft_worth <= self.target_worth <= self.frontier_worth:
            raise InvalidInput("routing: need draft_worth <= target_worth <= frontier_worth")

    def at_stake(self, symbol: str) -> float:
        """The position in a symbol, 0–1."""
        return self.positions.get(symbol, self.position)
