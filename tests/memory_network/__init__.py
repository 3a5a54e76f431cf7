"""Nodes and streams in memory: edge and cloud run against each other in one thread, seeded, in virtual time."""
