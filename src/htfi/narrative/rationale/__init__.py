"""Rationale."""
