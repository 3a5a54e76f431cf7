"""Who of the other nodes is well, ill, silent or gone, and who leads. Pure: a node's shell drives it."""
