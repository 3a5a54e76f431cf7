"""`htfi bench ticks`: the cost of one event, a replay, a decision and a run."""
