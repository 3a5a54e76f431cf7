"""Streams between nodes over gRPC and mutual TLS: decoding's Transport, and the watch over peers beside it."""
