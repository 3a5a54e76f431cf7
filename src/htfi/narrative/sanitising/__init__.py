"""From raw items to ones that may be read: what is hidden undone, what is forged held back, with reasons."""
