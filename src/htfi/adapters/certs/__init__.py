"""A private authority and the certificates of nodes, in files."""
