from collections.abc import Sequence

def leaf_hashes(entries: Sequence[bytes]) -> list[bytes]:
    """SHA-256(0x00 || entry) of each entry of a list or tuple."""

def node_hashes(row: Sequence[bytes]) -> list[bytes]:
    """SHA-256(0x01 || left || right) of each two hashes of a list or tuple; an odd last one is left out."""
