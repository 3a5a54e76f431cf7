"""Metrics, spans and logs as plain values; adapters expose and export them. It reads no clock and does no I/O."""
