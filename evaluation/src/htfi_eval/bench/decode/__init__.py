"""`htfi bench decode`: the gain of speculative decoding on unseen prompts."""
