"""`htfi regulate`: regulators' monitors over a run's record and order events."""
