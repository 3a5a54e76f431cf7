"""The draft in a process of its own, which works ahead while the target verifies: channel, client and worker."""
