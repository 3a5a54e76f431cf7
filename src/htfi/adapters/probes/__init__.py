"""Whether a process lives and is ready, over HTTP, for what starts and stops processes."""
