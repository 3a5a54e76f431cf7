"""Numeric experts, their fusion, the effect of opinions on news, and scores."""
