"""Evaluations and benchmarks of HTFI, installed beside it: `htfi eval` and `htfi bench`."""
