"""How much work a decision is given, where it runs, and which nodes are healthy."""
