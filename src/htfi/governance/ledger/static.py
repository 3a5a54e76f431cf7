"""A log as static files, by the layout of c2sp.org/tlog-tiles; `htfi ledger export` writes them."""

from collections.abc import Iterator

import msgspec

from htfi.governance.ledger.audit import Progress
from htfi.governance.ledger.log import LogView
from htfi.governance.ledger.merkle import HASH_BYTES, leaf_hash
from htfi.governance.ledger.tiles import TILE_WIDTH, entry_bundle, tile_path, tile_shapes


def static_files(log: LogView, size: int, progress: Progress) -> Iterator[tuple[str, bytes]]:
    """(path, content) of everything that a client of `size` entries may fetch; the checkpoint comes last.

    Raises: as LogView.
    """
    _, note = log.checkpoint(size)
    for start in range(0, size, TILE_WIDTH):
        stop = min(start + TILE_WIDTH, size)
        entries = list(log.entries(start, stop))
        yield tile_path("entries", start // TILE_WIDTH, stop - start), entry_bundle(entries)
        progress(stop, size)
    for level, index, width in tile_shapes(size):
        yield tile_path(level, index, width), log.tile(level, index)[: width * HASH_BYTES]
    yield "checkpoint", str(note).encode()


def json_line(index: int, entry: bytes) -> bytes:
    """One line for people and scripts: the entry with its index and leaf hash; base64 if not JSON."""
    head = msgspec.json.encode({"index": index, "leaf_hash": leaf_hash(entry).hex()})
    if _is_json_line(entry):
        return head[:-1] + b',"decision":' + entry + b"}\n"
    return head[:-1] + b',"entry":' + msgspec.json.encode(entry) + b"}\n"


def _is_json_line(entry: bytes) -> bool:
    try:
        msgspec.json.decode(entry)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return b"\n" not in entry
