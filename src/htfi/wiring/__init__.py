"""Typed settings, and the objects built from them."""
