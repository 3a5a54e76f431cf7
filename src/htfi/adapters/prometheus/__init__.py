"""Metrics in the text forms that Prometheus and OpenMetrics read (extra `[telemetry]`)."""
