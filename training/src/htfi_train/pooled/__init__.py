"""Fits the pooled learner: its samples, linear terms and trees, walk-forward."""
