"""Regulators' monitors: typed checks over decisions, governance entries and order events, each with its article."""
