"""Foundation models of the Chronos family from a folder on disk, behind the extra [foundation]. Wiring opens them."""
