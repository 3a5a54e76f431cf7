"""Several series at once: how their surprises go together, joint scenarios, and what a book may lose."""
