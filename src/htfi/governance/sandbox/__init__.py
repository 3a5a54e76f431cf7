"""Decisions on candidates, all pure: trials, the verdict, what may be promoted, the entries of the governance log."""
