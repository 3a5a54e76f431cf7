"""How much work a decision is given."""
