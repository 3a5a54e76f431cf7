"""Checkpoints and tiles of a log that another process serves over HTTP."""
