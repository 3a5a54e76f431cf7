"""Durable state: the ledger's database, the quarantine, snapshots, released decisions."""
