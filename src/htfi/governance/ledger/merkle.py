"""RFC 9162 Merkle tree hashing, proofs and their verification; pure. Log, audit and witness call it.

Letters: n leaves; a perfect subtree of height h and index i covers leaves [i·2^h, (i+1)·2^h); MTH is the
Merkle Tree Hash of a range of leaves (RFC 9162 §2.1.1). Every hash is SHA-256, 32 bytes.
"""

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256

try:
    from htfi.governance.ledger import hashing_core as core
except ImportError:  # built without a C compiler, or the processor has no instructions for SHA-256
    core = None

HASH_BYTES = 32
EMPTY_ROOT = sha256(b"").digest()

Subtree = Callable[[int, int], bytes]  # (height, index) of a perfect subtree → its hash


def leaf_hash(entry: bytes) -> bytes:
    """The hash of one entry: SHA-256(0x00 ‖ entry), RFC 9162 §2.1.1."""
    return sha256(b"\x00" + entry).digest()


def leaf_hashes(entries: Iterable[bytes]) -> list[bytes]:
    """`leaf_hash` of each."""
    if core is not None:
        return core.leaf_hashes(list(entries))
    return [sha256(b"\x00" + entry).digest() for entry in entries]


def _node_hashes(row: Sequence[bytes]) -> list[bytes]:
    """`node_hash` of each two hashes; one that is left over at the end is not hashed."""
    if core is not None:
        return core.node_hashes(row)
    return [sha256(b"\x01" + left + right).digest() for left, right in zip(row[::2], row[1::2], strict=False)]


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node: SHA-256(0x01 ‖ left ‖ right), RFC 9162 §2.1.1."""
    return sha256(b"\x01" + left + right).digest()


class Frontier:
    """The right edge of a growing tree: one hash per set bit of `size`, enough to append and to root.

    `peaks[h]` is the perfect subtree of height h where bit h of `size` is set, and stale elsewhere.
    """

    __slots__ = ("peaks", "size")

    def __init__(self, size: int = 0, peaks: Sequence[bytes] = ()) -> None:
        self.size = size
        self.peaks = list(peaks)

    def copy(self) -> "Frontier":
        return Frontier(self.size, self.peaks)

    def extend(self, leaves: Sequence[bytes]) -> list[tuple[int, bytes]]:
        """Add leaf hashes, amortised one node hash each; level by level, so that a group costs little but its hashes.

        Returns the perfect subtrees finished on the way whose height is a multiple of 8, as (height, hash),
        those of one height in order: the hashes that tiles above level 0 hold.
        """
        finished: list[tuple[int, bytes]] = []
        peaks, height, row = self.peaks, 0, list(leaves)
        while row:
            if self.size >> height & 1:
                row.insert(0, peaks[height])
            if height == len(peaks):
                peaks.append(b"")
            if len(row) & 1:
                peaks[height] = row[-1]
            height += 1
            row = _node_hashes(row)
            if height & 7 == 0:
                finished += [(height, node) for node in row]
        self.size += len(leaves)
        return finished

    def root(self) -> bytes:
        """MTH of all leaves so far."""
        root: bytes | None = None
        for height in range(self.size.bit_length()):
            if self.size >> height & 1:
                root = self.peaks[height] if root is None else node_hash(self.peaks[height], root)
        return EMPTY_ROOT if root is None else root


def frontier_at(size: int, subtree: Subtree) -> Frontier:
    """The frontier of the first `size` leaves, from O(log n) stored subtrees."""
    peaks = [b""] * size.bit_length()
    for height in range(size.bit_length()):
        if size >> height & 1:
            peaks[height] = subtree(height, (size >> height) - 1)
    return Frontier(size, peaks)


def range_hash(start: int, stop: int, subtree: Subtree) -> bytes:
    """MTH of leaves [start, stop); `start` is a multiple of a power of two not less than stop - start."""
    if start == stop:
        return EMPTY_ROOT
    perfect: list[bytes] = []
    while start < stop:
        height = (stop - start).bit_length() - 1
        perfect.append(subtree(height, start >> height))
        start += 1 << height
    root = perfect.pop()
    while perfect:
        root = node_hash(perfect.pop(), root)
    return root


def perfect_root(hashes: Sequence[bytes]) -> bytes:
    """The root over 2^k hashes of equal height."""
    level = list(hashes)
    while len(level) > 1:
        level = _node_hashes(level)
    return level[0]


def inclusion_proof(index: int, size: int, subtree: Subtree) -> list[bytes]:
    """PATH(index, D_size), from the leaf's sibling up (RFC 9162 §2.1.3.1). Requires 0 ≤ index < size."""
    start, stop, path = 0, size, list[bytes]()
    while stop - start > 1:
        split = start + _split_size(stop - start)
        if index < split:
            path.append(range_hash(split, stop, subtree))
            stop = split
        else:
            path.append(range_hash(start, split, subtree))
            start = split
    path.reverse()
    return path


def consistency_proof(old_size: int, size: int, subtree: Subtree) -> list[bytes]:
    """PROOF(old_size, D_size) (RFC 9162 §2.1.4.1). Requires 0 ≤ old_size ≤ size; from nothing it is empty."""
    if old_size in (0, size):
        return []
    start, stop, path, whole = 0, size, list[bytes](), True
    while old_size != stop:
        split = start + _split_size(stop - start)
        if old_size <= split:
            path.append(range_hash(split, stop, subtree))
            stop = split
        else:
            path.append(range_hash(start, split, subtree))
            start, whole = split, False
    if not whole:
        path.append(range_hash(start, stop, subtree))
    path.reverse()
    return path


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether `leaf` stands at `index` of the tree of `size` leaves with this root (RFC 9162 §2.1.3.2)."""
    if not 0 <= index < size:
        return False
    node, last, current = index, size - 1, leaf
    for step in proof:
        if last == 0:
            return False
        if node & 1 or node == last:
            current = node_hash(step, current)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            current = node_hash(current, step)
        node, last = node >> 1, last >> 1
    return last == 0 and current == root


def verify_consistency(
    old_size: int, size: int, proof: Sequence[bytes], old_root: bytes, root: bytes
) -> bool:
    """Whether the tree of `size` leaves extends that of `old_size` leaves (RFC 9162 §2.1.4.2).

    The RFC leaves old_size = 0 open: any tree extends the empty one, by an empty proof (C2SP tlog-witness).
    """
    if not 0 <= old_size <= size:
        return False
    if old_size == size:
        return not proof and old_root == root
    if old_size == 0:
        return not proof and old_root == EMPTY_ROOT
    steps = list(proof)
    if old_size & (old_size - 1) == 0:
        steps.insert(0, old_root)
    if not steps:
        return False
    node, last = old_size - 1, size - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    old = new = steps[0]
    for step in steps[1:]:
        if last == 0:
            return False
        if node & 1 or node == last:
            old, new = node_hash(step, old), node_hash(step, new)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            new = node_hash(new, step)
        node, last = node >> 1, last >> 1
    return last == 0 and old == old_root and new == root


def _split_size(num_leaves: int) -> int:
    """The largest power of two smaller than `num_leaves` (≥ 2)."""
    return 1 << (num_leaves - 1).bit_length() - 1
