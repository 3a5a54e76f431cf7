"""One answer written by two machines: an edge that drafts and a cloud that verifies (D3, D4)."""
