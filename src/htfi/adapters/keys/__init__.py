"""Signing keys, and what a witness has vouched for with its own."""
