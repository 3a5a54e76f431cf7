"""Tile coordinates and paths against the examples of c2sp.org/tlog-tiles."""

from collections import Counter

import pytest

from htfi.domain.errors import IntegrityError
from htfi.governance.ledger.merkle import Frontier, leaf_hash, perfect_root
from htfi.governance.ledger.tiles import (
    TileEdge,
    edge_at,
    entry_bundle,
    subtrees,
    tile_path,
    tile_shapes,
)


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ((0, 0), "tile/0/000"),
        ((0, 1234067), "tile/0/x001/x234/067"),
        ((0, 1000), "tile/0/x001/000"),
        ((2, 999), "tile/2/999"),
        ((1, 17, 5), "tile/1/017.p/5"),
        (("entries", 1234067, 255), "tile/entries/x001/x234/067.p/255"),
    ],
)
def test_tile_path_is_that_of_the_specification(arguments: tuple[int, int], path: str) -> None:
    assert tile_path(*arguments) == path


def test_70000_entries_have_the_tiles_of_the_specification() -> None:
    shapes = list(tile_shapes(70_000))
    full = Counter(level for level, _, width in shapes if width == 256)
    partial = {level: width for level, _, width in shapes if width < 256}
    assert full == {0: 273, 1: 1}
    assert partial == {0: 112, 1: 17, 2: 1}


def test_256_entries_have_one_full_tile_and_one_of_width_one_above() -> None:
    assert list(tile_shapes(256)) == [(0, 0, 256), (1, 0, 1)]
    assert list(tile_shapes(0)) == []


def test_entry_bundle_prefixes_each_entry_with_its_length() -> None:
    assert entry_bundle([b"abc", b"", b"z" * 258]) == b"\x00\x03abc\x00\x00\x01\x02" + b"z" * 258


@pytest.mark.parametrize("cuts", [(1, 255, 256, 257, 1000), (66_000,), (256, 65_536, 65_537)])
def test_tiles_grow_the_same_in_any_grouping(cuts: tuple[int, ...]) -> None:
    leaves = [leaf_hash(index.to_bytes(4, "big")) for index in range(cuts[-1])]
    frontier, edge, stored = Frontier(), TileEdge(), dict[tuple[int, int], bytes]()
    start = 0
    for stop in cuts:
        group = leaves[start:stop]
        for level, index, hashes in edge.extend(group, frontier.extend(group)):
            stored[level, index] = hashes
        start = stop
    for level, index, width in tile_shapes(cuts[-1]):
        span = 256**level
        first = index * 256 * span
        expected = [perfect_root(leaves[at : at + span]) for at in range(first, first + width * span, span)]
        assert stored.pop((level, index)) == b"".join(expected)
    assert stored == {}


def test_short_tile_is_named() -> None:
    with pytest.raises(IntegrityError, match="hash tile 0/1 is cut short"):
        subtrees(lambda *_: b"\0" * 31)(0, 256)
    with pytest.raises(IntegrityError, match="hash tile 0/0 is cut short"):
        edge_at(5, lambda *_: b"\0" * 64)
