"""Statistics of evaluations on plain arrays: significance, backtests, overfitting, leaks. `htfi eval` uses them."""
