"""Time and worlds that tests and replays control."""
