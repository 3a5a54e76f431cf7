"""A draft in a process of its own, which works ahead while a target verifies: its channel, its client and its loop."""
