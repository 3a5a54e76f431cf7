"""The ledger, and the policy that judges a forecast."""
