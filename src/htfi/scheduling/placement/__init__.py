"""Where a request runs: the cheapest placement that meets its deadline, priced from live figures (D3)."""
