"""What the gate checks, by what it is about. A check gives its objection, or None."""
