"""Forecasters to compare with."""
