"""`htfi eval warning`: chances of market stress, and alerts on a budget."""
