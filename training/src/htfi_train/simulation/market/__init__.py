"""Simulated markets: prices with known causes, order flow, and the stylised facts that both are held to."""
