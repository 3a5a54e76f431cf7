"""Many price paths after one prefix: guessed ahead, verified together, each keeping its accepted tokens."""
