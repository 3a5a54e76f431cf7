"""Several series at once: dependence of their surprises, joint scenarios, and the risk of a portfolio."""
