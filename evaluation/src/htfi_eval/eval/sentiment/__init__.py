"""`htfi eval sentiment`: labels of sentiment and stance, beside word counts."""
