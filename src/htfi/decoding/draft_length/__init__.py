"""How far to draft, from what drafts survive and what passes cost. The author asks before each round."""
