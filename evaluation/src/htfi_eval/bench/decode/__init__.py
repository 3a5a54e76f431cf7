"""`htfi bench decode`: what speculative decoding gains on unseen prompts."""
