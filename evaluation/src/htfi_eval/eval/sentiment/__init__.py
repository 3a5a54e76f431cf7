"""`htfi eval sentiment`: labels of sentiment and stance, compared with word counts."""
