"""Whether a process lives and is ready, over HTTP, for whoever starts and stops processes."""
