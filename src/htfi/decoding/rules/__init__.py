"""Acceptance rules: which drafted tokens are accepted, by the shared noise (the default) or by rejection."""
