"""What a body says that its headline does not: the passages that matter, tables of figures, quotations."""
