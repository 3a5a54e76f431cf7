"""Figures on what is read in news: official documents that are held back, central banks' decisions."""
