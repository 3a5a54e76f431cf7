"""`htfi eval mini`: the mini models on simulated stories they never saw."""
