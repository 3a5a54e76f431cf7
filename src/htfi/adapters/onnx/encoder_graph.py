"""Graphs of BERT encoders."""
