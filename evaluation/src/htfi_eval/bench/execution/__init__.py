"""`htfi bench execution`: the gate, order entry and the simulated venue."""
