"""One expert per file."""
