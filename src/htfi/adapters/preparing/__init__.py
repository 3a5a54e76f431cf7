"""A process of its own that prepares what is known to follow."""
