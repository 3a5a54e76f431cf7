"""Volatility models of the arch package as experts, behind the extra [arch]. Wiring opens them."""
