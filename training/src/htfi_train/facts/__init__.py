"""Labelled lines for the network of facts, and what it learns from them (`htfi models facts`)."""
