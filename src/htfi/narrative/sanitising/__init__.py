"""Screens raw items: disguises are removed, forged and manipulative items held back, with reasons."""
