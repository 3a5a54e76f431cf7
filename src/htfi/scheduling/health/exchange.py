"""Messages about policy bundles on the streams of health monitoring: cut into parts that fit a body, and joined again.

What they say is governance's; `monitor` carries them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from htfi.scheduling.health.messages import MAX_PART_BYTES, MAX_PARTS, BundlePart


class BundleExchange(Protocol):
    """What carries on the agreement on bundles of this node. Neither call may raise for what a peer sends."""

    def received(self, peer: str, body: bytes) -> Sequence[tuple[str, bytes]]:
        """What a peer's message calls for: bodies by the node they go to."""
        ...

    def due(self) -> Sequence[tuple[str, bytes]]:
        """What is to be sent now by itself."""
        ...


class NoBundleExchange:
    """Of a node without a governance folder: takes nothing and sends nothing."""

    def received(self, peer: str, body: bytes) -> Sequence[tuple[str, bytes]]:
        del peer, body
        return ()

    def due(self) -> Sequence[tuple[str, bytes]]:
        return ()


def split_body(body: bytes, seq: int) -> Iterator[BundlePart]:
    """The parts of a message, `seq` being its number. One that is too long for `MAX_PARTS` has none."""
    num = -(-len(body) // MAX_PART_BYTES)
    if num > MAX_PARTS:
        return
    for index in range(num):
        yield BundlePart(seq, index, num, body[index * MAX_PART_BYTES : (index + 1) * MAX_PART_BYTES])


@dataclass
class PartJoiner:
    """Joins parts that arrive in order; a message with a gap is dropped, as governance sends it again."""

    seqs: dict[str, int] = field(default_factory=dict[str, int])
    parts: dict[str, list[bytes]] = field(default_factory=dict[str, list[bytes]])

    def join(self, peer: str, part: BundlePart) -> bytes | None:
        """The whole message with its last part, else None."""
        if part.index == 0:
            self.seqs[peer], self.parts[peer] = part.seq, []
        parts = self.parts.get(peer, [])
        if self.seqs.get(peer) != part.seq or len(parts) != part.index:
            self.parts.pop(peer, None)
            self.seqs.pop(peer, None)
            return None
        parts.append(part.content)
        if part.index + 1 < part.num:
            return None
        del self.parts[peer], self.seqs[peer]
        return b"".join(parts)
