"""Charts and pages of evaluations."""
