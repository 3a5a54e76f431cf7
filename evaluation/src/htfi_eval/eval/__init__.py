"""Evaluations of models and forecasts against baselines. `htfi eval` runs them."""
