"""What if: scenarios answered on the state of a run, beside its unchanged forecast."""
