"""Trials of candidates: events from a description, frames to and from a confined process, figures from its answers."""
