"""`htfi eval mini`: the mini models on simulated stories outside their training."""
