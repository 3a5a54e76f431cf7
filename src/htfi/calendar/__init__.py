"""Calendars of scheduled events: how their rows are read, what kind each event is, and which recur by rule."""
