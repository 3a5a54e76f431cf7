"""Variance that is known before it comes: time of week, gaps and scheduled events, as one factor on every expert."""
