"""Numeric experts, their fusion and their scores."""
