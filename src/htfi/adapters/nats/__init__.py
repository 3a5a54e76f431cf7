"""NATS JetStream: messages into a run, decisions out of it (extra `[bus]`)."""
