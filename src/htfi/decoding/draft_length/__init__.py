"""How far to draft, from how often drafts are accepted and what passes cost. The engine asks before each round."""
