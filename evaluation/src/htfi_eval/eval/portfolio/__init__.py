"""`htfi eval portfolio`: risk of books from joint forecasts, and rules deflated for luck."""
