"""What if: the distribution of positions and of a book given a headline, a shock or a named stress."""
