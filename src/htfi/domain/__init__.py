"""Values that all packages share: events, forecasts, decisions, time and errors. Imports no other package of ours."""
