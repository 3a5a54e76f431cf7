"""`htfi eval warning`: probabilities of market stress, and alerts on a budget."""
