"""Training of HTFI's models and the simulation that they learn from, installed beside it."""
