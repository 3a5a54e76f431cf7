"""The ledger's entries: what a decision is, as compact canonical bytes, and the decision made from them again."""
