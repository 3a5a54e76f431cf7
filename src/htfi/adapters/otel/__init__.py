"""Spans to an OpenTelemetry collector by OTLP over HTTP (extra `[telemetry]`)."""
