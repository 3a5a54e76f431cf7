"""`htfi eval sanitise`: attacks on the news, and false positives."""
