"""Many price paths after one prefix: guessed ahead, verified whole, each keeping what is settled."""
