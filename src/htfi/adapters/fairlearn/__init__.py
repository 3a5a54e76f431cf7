"""fairlearn's metrics by group, with scipy's exact intervals and tests (extra [fairness])."""
