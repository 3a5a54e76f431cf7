"""Measurements, each beside its peers."""
