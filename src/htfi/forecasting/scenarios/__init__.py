"""What if: the distribution of positions and of a portfolio given a headline, a shock or a named stress."""
