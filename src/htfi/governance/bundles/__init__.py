"""Policy bundles: the limits that an institution's officers sign together, and which of them is in force."""
