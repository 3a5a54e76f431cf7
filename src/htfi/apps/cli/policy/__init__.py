"""`htfi policy`: policy bundles that officers sign together."""
