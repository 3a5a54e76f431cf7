"""Early warning of market stress: what an event is, what is known before it, a chance of it, and alerts on a budget."""
