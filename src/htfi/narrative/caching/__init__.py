"""Caches what was computed from texts: points of texts, views, keys and values of prompts."""
