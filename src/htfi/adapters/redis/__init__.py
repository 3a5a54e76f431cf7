"""The context cache that several machines share, on Redis."""
