"""Scores of news items: sentiment, stance, kind of event, relevance, novelty, and the symbols that a text names."""
