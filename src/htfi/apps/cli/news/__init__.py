"""`htfi news`: what is understood of a headline, and what it would move."""
