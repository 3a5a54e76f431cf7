"""A transparency log: RFC 9162 Merkle tree, C2SP checkpoints, proofs and cosignatures."""
