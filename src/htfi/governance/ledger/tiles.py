"""C2SP hash tiles (c2sp.org/tlog-tiles): how they grow, give subtrees, and where each is served.

A tile of level l holds up to 256 consecutive hashes of perfect subtrees of height 8·l. Log grows tiles,
proofs read them, and export writes them as static files that any tile client understands.
"""

from collections.abc import Callable, Iterator, Sequence

from htfi.domain.errors import IntegrityError
from htfi.governance.ledger.merkle import HASH_BYTES, Subtree, perfect_root

TILE_WIDTH = 256
TILE_BYTES = TILE_WIDTH * HASH_BYTES
MAX_ENTRY_BYTES = 0xFFFF  # entry bundles prefix each entry with a uint16 length

ReadTile = Callable[[int, int], bytes]  # (level, index) → hashes so far
HashTile = tuple[int, int, bytes]  # level, index, hashes


class TileEdge:
    """The unfinished tile of every level, to which a growing log adds hashes."""

    __slots__ = ("size", "tails")

    def __init__(self, size: int = 0, tails: Sequence[bytes] = ()) -> None:
        self.size = size
        self.tails = list(tails)

    def copy(self) -> "TileEdge":
        return TileEdge(self.size, self.tails)

    def extend(self, leaves: Sequence[bytes], finished: Sequence[tuple[int, bytes]]) -> list[HashTile]:
        """Add leaf hashes and the subtrees that `Frontier.extend` gave for them; gives the changed tiles."""
        changed: list[HashTile] = []
        levels: list[list[bytes]] = [list(leaves)]
        for height, node in finished:
            while len(levels) <= height // 8:
                levels.append([])
            levels[height // 8].append(node)
        for level, hashes in enumerate(levels):
            if level == len(self.tails):
                self.tails.append(b"")
            content = self.tails[level] + b"".join(hashes)
            index = self.size >> 8 * level >> 8
            for offset in range(0, len(content) if hashes else 0, TILE_BYTES):
                changed.append((level, index, content[offset : offset + TILE_BYTES]))
                index += 1
            self.tails[level] = content[len(content) // TILE_BYTES * TILE_BYTES :]
        self.size += len(leaves)
        return changed


def edge_at(size: int, read: ReadTile) -> TileEdge:
    """The unfinished tiles of a stored log of `size` entries. Raises: IntegrityError."""
    tails: list[bytes] = []
    while width := size >> 8 * len(tails):
        level = len(tails)
        tails.append(
            _tile_hashes(read, level, width >> 8, 0, width % TILE_WIDTH) if width % TILE_WIDTH else b""
        )
    return TileEdge(size, tails)


def subtrees(read: ReadTile) -> Subtree:
    """Hashes of perfect subtrees, from tiles; each tile is read once. When called, raises: IntegrityError."""
    seen: dict[tuple[int, int], bytes] = {}

    def read_once(level: int, index: int) -> bytes:
        if (level, index) not in seen:
            seen[level, index] = read(level, index)
        return seen[level, index]

    def subtree(height: int, index: int) -> bytes:
        level, rest = divmod(height, 8)
        first, width = index << rest, 1 << rest
        content = _tile_hashes(read_once, level, first // TILE_WIDTH, first % TILE_WIDTH, width)
        return perfect_root([content[i : i + HASH_BYTES] for i in range(0, len(content), HASH_BYTES)])

    return subtree


def tile_path(level: int | str, index: int, width: int = TILE_WIDTH) -> str:
    """Where a tile is served: tile/<L>/<N>[.p/<W>], index 1234067 as x001/x234/067; or 'entries'."""
    parts = [f"{index % 1000:03d}"]
    while index := index // 1000:
        parts.insert(0, f"x{index % 1000:03d}")
    partial = "" if width == TILE_WIDTH else f".p/{width}"
    return f"tile/{level}/{'/'.join(parts)}{partial}"


def entry_bundle(entries: Sequence[bytes]) -> bytes:
    """Entries, each behind its big-endian uint16 length."""
    return b"".join(len(entry).to_bytes(2, "big") + entry for entry in entries)


def entries_of_bundle(content: bytes) -> list[bytes]:
    """The entries of a bundle. Raises: IntegrityError where it is cut short."""
    entries: list[bytes] = []
    place = 0
    while place < len(content):
        stop = place + 2 + int.from_bytes(content[place : place + 2], "big")
        if stop > len(content) or place + 2 > len(content):
            raise IntegrityError(f"an entry bundle is cut short at byte {place:,}")
        entries.append(content[place + 2 : stop])
        place = stop
    return entries


def tile_shapes(size: int) -> Iterator[tuple[int, int, int]]:
    """(level, index, width) of every hash tile of a log of `size` entries, partial ones last."""
    level = 0
    while num_hashes := size >> 8 * level:
        for index in range(-(-num_hashes // TILE_WIDTH)):
            yield level, index, min(TILE_WIDTH, num_hashes - index * TILE_WIDTH)
        level += 1


def _tile_hashes(read: ReadTile, level: int, index: int, first: int, width: int) -> bytes:
    content = read(level, index)[first * HASH_BYTES : (first + width) * HASH_BYTES]
    if len(content) != width * HASH_BYTES:
        raise IntegrityError(f"hash tile {level}/{index} is cut short: restore the ledger from a copy")
    return content
