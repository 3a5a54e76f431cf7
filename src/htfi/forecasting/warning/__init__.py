"""Early warning of market stress: events, features known before them, probabilities, and alerts on a budget."""
