"""`htfi models fit`: fits the pooled learner to bars and compares it with the experts that stand, out of sample."""
