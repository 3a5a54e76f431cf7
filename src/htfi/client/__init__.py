"""A client of `htfi serve`."""
