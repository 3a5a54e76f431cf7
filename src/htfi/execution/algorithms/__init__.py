"""Execution algorithms: pure planners that say how much of a parent order should rest or take at each instant."""
