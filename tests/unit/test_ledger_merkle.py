"""RFC 9162 hashing and proofs against the vectors of the Certificate Transparency reference code."""

import base64
import random
from hashlib import sha256

import pytest

from htfi.governance.ledger import merkle
from htfi.governance.ledger.merkle import (
    EMPTY_ROOT,
    Frontier,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    leaf_hashes,
    perfect_root,
    range_hash,
    verify_consistency,
    verify_inclusion,
)

# github.com/transparency-dev/merkle, testonly/constants.go
ENTRIES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    bytes.fromhex(text)
    for text in (
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    )
]
INCLUSION = [  # index, size, path
    (0, 1, []),
    (
        0,
        8,
        [
            "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
        ],
    ),
    (
        5,
        8,
        [
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        ],
    ),
    (2, 3, ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"]),
]
CONSISTENCY = [  # old size, size, path
    (1, 1, []),
    (
        6,
        8,
        [
            "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
            "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        ],
    ),
    (
        2,
        5,
        [
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        ],
    ),
]
LEAVES = [leaf_hash(entry) for entry in ENTRIES]


def subtree(height: int, index: int) -> bytes:
    return perfect_root(LEAVES[index << height : (index + 1) << height])


def hashes(texts: list[str]) -> list[bytes]:
    return [bytes.fromhex(text) for text in texts]


@pytest.mark.parametrize("size", range(9))
def test_root_is_the_published_one_at_every_size(size: int) -> None:
    frontier = Frontier()
    frontier.extend(LEAVES[:size])
    assert frontier.root() == ROOTS[size] == range_hash(0, size, subtree)


def test_leaf_hash_is_that_of_the_go_checksum_database() -> None:
    # golang.org/x/mod/sumdb/tlog, TestFormatTree
    golden = "TszzRgjTG6xce+z2AG31kAXYKBgQVtCSCE40HmuwBb0="
    assert base64.b64encode(leaf_hash(b"hello world")).decode() == golden


def test_hashes_of_a_group_are_those_of_hashlib_at_every_length() -> None:
    noise = random.Random(5)
    entries = [noise.randbytes(size) for size in (*range(260), 1500, 65_535)]
    assert leaf_hashes(entries) == [sha256(b"\x00" + entry).digest() for entry in entries]
    leaves = [noise.randbytes(32) for _ in range(256)]
    assert perfect_root(leaves) == plain_root(leaves)


def plain_root(leaves: list[bytes]) -> bytes:
    if len(leaves) == 1:
        return leaves[0]
    half = len(leaves) // 2
    return sha256(b"\x01" + plain_root(leaves[:half]) + plain_root(leaves[half:])).digest()


def test_a_tree_is_the_same_without_compiled_hashing(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = random.Random(6)
    entries = [noise.randbytes(noise.randrange(3000)) for _ in range(700)]
    found: list[tuple[bytes, list[tuple[int, bytes]]]] = []
    for core in (merkle.core, None):
        monkeypatch.setattr(merkle, "core", core)
        frontier = Frontier()
        finished = frontier.extend(leaf_hashes(entries[:301])) + frontier.extend(leaf_hashes(entries[301:]))
        found.append((frontier.root(), finished))
    assert found[0] == found[1]
    assert len(found[0][1]) == 2


@pytest.mark.skipif(merkle.core is None, reason="hashing is not compiled, or not for this processor")
@pytest.mark.parametrize("values", [["text"], [bytearray(32)], 7, iter([b""])])
def test_compiled_hashing_takes_bytes_alone(values: object) -> None:
    with pytest.raises(TypeError, match="takes a list or tuple of"):
        merkle.core.leaf_hashes(values)
    with pytest.raises(TypeError, match="takes a list or tuple of"):
        merkle.core.node_hashes([b"x" * 31, b"x" * 32])


@pytest.mark.parametrize(("index", "size", "path"), INCLUSION)
def test_inclusion_proof_is_the_published_one(index: int, size: int, path: list[str]) -> None:
    assert inclusion_proof(index, size, subtree) == hashes(path)
    assert verify_inclusion(LEAVES[index], index, size, hashes(path), ROOTS[size])


@pytest.mark.parametrize(("old_size", "size", "path"), CONSISTENCY)
def test_consistency_proof_is_the_published_one(old_size: int, size: int, path: list[str]) -> None:
    assert consistency_proof(old_size, size, subtree) == hashes(path)
    assert verify_consistency(old_size, size, hashes(path), ROOTS[old_size], ROOTS[size])


def test_every_tree_extends_the_empty_one_by_an_empty_proof() -> None:
    assert verify_consistency(0, 5, [], EMPTY_ROOT, ROOTS[5])
    assert not verify_consistency(0, 5, [ROOTS[1]], EMPTY_ROOT, ROOTS[5])
    assert not verify_consistency(0, 5, [], ROOTS[1], ROOTS[5])


def test_trees_of_one_size_agree_only_in_their_roots() -> None:
    assert verify_consistency(4, 4, [], ROOTS[4], ROOTS[4])
    assert not verify_consistency(4, 4, [], ROOTS[4], ROOTS[5])
    assert not verify_consistency(4, 4, [ROOTS[4]], ROOTS[4], ROOTS[4])


@pytest.mark.parametrize(("index", "size"), [(-1, 8), (8, 8), (9, 8), (0, 0)])
def test_index_outside_the_tree_is_never_included(index: int, size: int) -> None:
    assert not verify_inclusion(LEAVES[0], index, size, [], LEAVES[0])


@pytest.mark.parametrize(("old_size", "size"), [(-1, 8), (9, 8), (2, 1)])
def test_sizes_out_of_order_are_never_consistent(old_size: int, size: int) -> None:
    assert not verify_consistency(old_size, size, [], ROOTS[1], ROOTS[1])


def test_proof_too_short_or_too_long_is_refused() -> None:
    path = hashes(INCLUSION[1][2])
    assert not verify_inclusion(LEAVES[0], 0, 8, path[:-1], ROOTS[8])
    assert not verify_inclusion(LEAVES[0], 0, 8, [*path, path[0]], ROOTS[8])
    growth = hashes(CONSISTENCY[1][2])
    assert not verify_consistency(6, 8, growth[:-1], ROOTS[6], ROOTS[8])
    assert not verify_consistency(6, 8, [*growth, growth[0]], ROOTS[6], ROOTS[8])
    assert not verify_consistency(6, 8, [], ROOTS[6], ROOTS[8])


def test_inner_node_cannot_pass_for_a_leaf() -> None:
    pair = LEAVES[0] + LEAVES[1]
    assert leaf_hash(pair) != ROOTS[2]
