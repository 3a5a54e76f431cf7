"""News and rationale: what is read, and what is said."""
