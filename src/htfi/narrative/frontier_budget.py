"""What deep readings by a frontier model may still cost."""

from htfi.narrative.config import RoutingConfig


class FrontierBudget:
    """Cents that are left; without a frontier model deep readings cost nothing."""

    def __init__(self, routing: RoutingConfig, *, has_frontier: bool) -> None:
        self.has_frontier = has_frontier
        self._each_cents = routing.frontier_cents_per_reading
        self.cents = routing.frontier_budget_cents if has_frontier else 0.0

    def num_affordable(self, num_readings: int) -> int:
        """How many of so many deep readings the budget allows."""
        if not self.has_frontier:
            return num_readings
        return min(num_readings, int(self.cents / self._each_cents + 1e-9))

    def charge(self, num_readings: int) -> None:
        """Charge deep readings to the budget."""
        if self.has_frontier:
            self.cents = round(self.cents - num_readings * self._each_cents, 6)
