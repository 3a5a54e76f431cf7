"""Values that every room shares: events, forecasts, decisions, time and errors. Imports nothing of ours."""
