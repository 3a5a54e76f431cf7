"""Headlines of simulated events: a grammar with paraphrase, one module for each cause."""
