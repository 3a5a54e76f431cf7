"""Runs a process that may not be trusted: namespaces, system-call filter, file rules, bounds. Linux only."""
