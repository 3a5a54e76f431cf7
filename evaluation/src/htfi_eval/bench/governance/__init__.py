"""Benchmarks of governance: how soon a stop holds, what the checks of a decision cost."""
