"""Decodes the entries of a ledger for those that read them in turn, as the table and the page of a run do.

A run that has made its decisions into objects already, for their lines, hands these on.
"""

from collections.abc import Callable

from htfi.domain.decision import Decision, Receipt
from htfi.pipeline.record.entry import decode_entry

MAX_HELD = 4_096  # decisions, of some 20 kB each in Python: the memory of a long run is left as it is
MAX_HELD_BYTES = 4 << 20  # of their entries: one with much news takes more

Decode = Callable[[Receipt, bytes], Decision]


def decode_each(receipt: Receipt, entry: bytes) -> Decision:
    """The decision of an entry. Raises: msgspec.ValidationError where it is none."""
    del receipt
    return decode_entry(entry)


class DecodedOnce:
    """Is `decode_each` for a ledger of `size` entries, and holds its decisions where it is a short one.

    `size` is 0 for one that a run has yet to write: once it is long, nothing is held. A decision is held under the hash
    of its entry, so that another entry in its place is never taken for it.
    """

    def __init__(self, size: int = 0) -> None:
        self._held: dict[str, Decision] = {}
        self._left_bytes = MAX_HELD_BYTES if size <= MAX_HELD else 0

    def __call__(self, receipt: Receipt, entry: bytes) -> Decision:
        """See `decode_each`."""
        held = self._held.get(receipt.leaf_hash)
        if held is not None:
            return held
        decision = decode_entry(entry)
        self.hold(receipt, entry, decision)
        return decision

    def hold(self, receipt: Receipt, entry: bytes, decision: Decision) -> None:
        """Hold what an entry holds, words included, as far as memory allows."""
        if receipt.index >= MAX_HELD:
            self._held.clear()
            self._left_bytes = 0
        elif len(entry) <= self._left_bytes:
            self._left_bytes -= len(entry)
            self._held[receipt.leaf_hash] = decision
