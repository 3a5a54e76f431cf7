"""Evaluations of governance, part by part. `htfi eval governance` joins them."""
