"""The embedded engine: graphs written from model folders, run by onnxruntime. Wiring opens networks here."""
