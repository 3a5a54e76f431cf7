"""`htfi calendar`: what a calendar of scheduled events holds, and what a run would do about it."""
