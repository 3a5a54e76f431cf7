"""`htfi eval portfolio`: risk of books from joint forecasts, and trading rules corrected for multiple trials."""
