"""Opens what `htfi audit fairness` reads: runs, tables of decisions on clients."""
