"""Whether groups are treated alike: forecasts and client decisions by group, and views under counterfactual swaps."""
