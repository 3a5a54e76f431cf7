"""Text generators behind an OpenAI-compatible server. Wiring opens them; httpx comes with `htfi[frontier]`."""
