"""One foreign library each, behind a port of an inner package."""
