"""This machine's own vitals, read from what Linux shows of them."""
