"""Whose turn it is at a cloud's engine: who is admitted, who joins, which rows go in a pass together."""
