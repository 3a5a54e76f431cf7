"""Keeps what was worked out from texts, so that nobody works it out twice: points of texts, views, keys and values."""
