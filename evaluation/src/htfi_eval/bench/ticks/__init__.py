"""`htfi bench ticks`: the cost of one event, a replay and a decision."""
