"""Simulated order flow of one instrument and session: a market, honest parties, and parties that abuse it."""
