"""Where a request's work runs: every way priced from live figures, the cheapest that meets its deadline taken (D3)."""
