"""A TCP proxy that delays, drops and cuts what passes, for benchmarks and tests of the link."""
