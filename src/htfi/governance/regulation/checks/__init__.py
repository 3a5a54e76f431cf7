"""The checks, a module for each part of the rules; `catalogue` lists them."""
