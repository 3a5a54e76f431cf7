"""`htfi eval returns`: forecasts of returns compared with peers, out of sample."""
