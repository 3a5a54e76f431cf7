"""News and rationale: screening, scoring, routing, reading and explaining the news."""
