"""Statistics of evaluations, on plain arrays: whether a difference is real, how to split time, what leaks. Apps use it."""
