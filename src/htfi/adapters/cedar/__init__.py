"""Authorisation by Cedar (extra `[governance]`)."""
