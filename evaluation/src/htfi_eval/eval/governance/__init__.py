"""Evaluations of governance: what breakers, the sandbox, fairness, monitors and marks find, and what they miss."""
