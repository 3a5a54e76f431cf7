"""The link in memory: edge and clouds in one thread, over streams with faults, seeded and in virtual time."""
