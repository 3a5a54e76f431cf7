"""A learner over all series: what it reads of them, its trees, and the file that holds fitted models."""
