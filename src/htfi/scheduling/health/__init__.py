"""Which nodes are healthy, degraded, silent or dead, and which one leads. Pure: a node's shell drives it."""
