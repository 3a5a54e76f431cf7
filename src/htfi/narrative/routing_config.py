"""Settings of the router: what an item must be worth for a reader to look at it, and what is at stake."""

from dataclasses import dataclass, field

from htfi.domain.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class RoutingConfig:
    """Shares run 0–1; an item's worth is relevance · novelty · (½ + ½ position).

    What comes with symbols, or names one of the run's, is at least `tagged_relevance` relevant, whatever a head says.
    Below `draft_worth` the encoder's scores are all that is made of an item, below `target_worth` the draft's view;
    from `frontier_worth` on a frontier model is asked after the release, where one is wired: each time is reckoned
    `frontier_cents`, as long as `frontier_budget_cents` of the run last. `positions` are the shares of what may be at
    stake, by symbol; a symbol that is not named has `position`.
    """

    min_relevance: float = 0.2
    tagged_relevance: float = 0.5
    min_novelty: float = 0.05
    draft_worth: float = 0.15
    target_worth: float = 0.3
    frontier_worth: float = 0.9
    position: float = 1.0
    positions: dict[str, float] = field(default_factory=dict[str, float])
    frontier_cents: float = 1.0
    frontier_budget_cents: float = 100.0

    def __post_init__(self) -> None:
        shares = (
            "min_relevance",
            "tagged_relevance",
            "min_novelty",
            "draft_worth",
            "target_worth",
            "frontier_worth",
            "position",
        )
        for name in shares:
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise InvalidInput(f"routing.{name} must lie in 0..1, not {getattr(self, name)}")
        if not self.draft_worth <= self.target_worth <= self.frontier_worth:
            raise InvalidInput("routing: need draft_worth <= target_worth <= frontier_worth")
        for symbol, position in self.positions.items():
            if not 0.0 <= position <= 1.0:
                raise InvalidInput(f"routing.positions: {symbol} must lie in 0..1, not {position}")
        if not (0.0 < self.frontier_cents <= 1e9 and 0.0 <= self.frontier_budget_cents <= 1e9):
            raise InvalidInput("routing: frontier_cents must be above 0, frontier_budget_cents at least 0")

    def at_stake(self, symbol: str) -> float:
        """The position in a symbol, 0–1."""
        return self.positions.get(symbol, self.position)
