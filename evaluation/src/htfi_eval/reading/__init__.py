"""Figures on what is read in news: labelled lines, official documents, central banks' decisions."""
