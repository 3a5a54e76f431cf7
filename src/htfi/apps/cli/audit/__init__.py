"""`htfi audit`: whether groups are treated alike."""
