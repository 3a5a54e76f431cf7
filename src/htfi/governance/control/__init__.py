"""What changes while a run goes on: stops, bundles, breakers, approvals; and what of it keeps a decision back."""
