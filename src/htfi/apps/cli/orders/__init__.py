"""`htfi orders`: what a run did by orders, and what people ask of it."""
