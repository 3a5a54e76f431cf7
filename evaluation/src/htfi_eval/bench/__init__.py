"""Benchmarks, each beside other libraries. `htfi bench` runs them."""
