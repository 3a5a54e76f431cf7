"""Statistics of evaluations on plain arrays: is a difference real, how to split time, what leaks. Apps use them."""
