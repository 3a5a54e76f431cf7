"""Smart order routing: which venues get how much of a child order, by price, fee, queue, fill chance and latency."""
