"""What the service and the MCP server share: a run that is served, its forecasts as they are shown, its worker."""
