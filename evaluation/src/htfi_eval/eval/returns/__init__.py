"""`htfi eval returns`: forecasts of returns beside peers, out of sample."""
