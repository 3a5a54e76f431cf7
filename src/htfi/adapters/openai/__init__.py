"""Models behind an OpenAI-compatible HTTP server, as authors. Wiring opens them; httpx comes with `htfi[frontier]`."""
