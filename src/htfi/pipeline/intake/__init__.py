"""Rows from outside become ordered, valid events; what does not fit is rejected with its reason."""
