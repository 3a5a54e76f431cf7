"""A small causal network in C: the draft's step, several times cheaper than a general engine's."""
