"""Decisions that wait for people: which do, what is asked, and what an answer changes."""
