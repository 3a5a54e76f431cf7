"""Scheduled releases: when they come, what they may say, and which of it a headline tells."""
