"""Evaluations: what models and forecasts are worth, beside baselines. `htfi eval` runs them."""
