"""Trees of every size: our roots and proofs against a naive tree and pymerkle; altered proofs never hold."""

import pymerkle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.governance.ledger.merkle import (
    Frontier,
    consistency_proof,
    frontier_at,
    inclusion_proof,
    leaf_hash,
    node_hash,
    perfect_root,
    range_hash,
    verify_consistency,
    verify_inclusion,
)

NUM_LEAVES = 300
ENTRIES = [b"%d" % index for index in range(NUM_LEAVES)]
LEAVES = [leaf_hash(entry) for entry in ENTRIES]

sizes = st.integers(1, NUM_LEAVES)


def naive_root(leaves: list[bytes]) -> bytes:
    """MTH by the recursion of RFC 9162 §2.1.1, as it stands."""
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return node_hash(naive_root(leaves[:split]), naive_root(leaves[split:]))


def subtree(height: int, index: int) -> bytes:
    return perfect_root(LEAVES[index << height : (index + 1) << height])


@pytest.fixture(scope="module")
def oracle() -> pymerkle.InmemoryTree:
    tree = pymerkle.InmemoryTree(algorithm="sha256")
    tree.append_entries(ENTRIES)
    return tree


@given(st.lists(sizes, max_size=6))
def test_frontier_has_the_naive_root_in_any_grouping(cuts: list[int]) -> None:
    frontier, start = Frontier(), 0
    for stop in sorted(cuts):
        frontier.extend(LEAVES[start:stop])
        start = stop
        assert frontier.root() == naive_root(LEAVES[:stop])
        assert frontier_at(stop, subtree).root() == frontier.root()


@given(st.data(), sizes)
@settings(max_examples=examples(300))
def test_every_inclusion_proof_holds_and_is_pymerkles(
    oracle: pymerkle.InmemoryTree, data: st.DataObject, size: int
) -> None:
    index = data.draw(st.integers(0, size - 1))
    proof = inclusion_proof(index, size, subtree)
    root = naive_root(LEAVES[:size])
    assert verify_inclusion(LEAVES[index], index, size, proof, root)
    theirs = oracle.prove_inclusion(index + 1, size)
    assert theirs.path == [LEAVES[index], *proof]
    assert oracle.get_root(size) == root


@given(st.data(), sizes)
@settings(max_examples=examples(300))
def test_every_consistency_proof_holds_and_pymerkle_agrees(
    oracle: pymerkle.InmemoryTree, data: st.DataObject, size: int
) -> None:
    old_size = data.draw(st.integers(1, size))
    proof = consistency_proof(old_size, size, subtree)
    old_root, root = naive_root(LEAVES[:old_size]), naive_root(LEAVES[:size])
    assert verify_consistency(old_size, size, proof, old_root, root)
    theirs = oracle.prove_consistency(old_size, size)
    pymerkle.verify_consistency(old_root, root, theirs, prior_size=old_size, later_size=size)


@given(st.data(), sizes)
@settings(max_examples=examples(300))
def test_no_altered_inclusion_proof_holds(data: st.DataObject, size: int) -> None:
    index = data.draw(st.integers(0, size - 1))
    proof = inclusion_proof(index, size, subtree)
    root = naive_root(LEAVES[:size])
    everything = [LEAVES[index], *proof, root]
    which = data.draw(st.integers(0, len(everything) - 1))
    everything[which] = flipped(everything[which], data)
    leaf, *path, altered_root = everything
    assert not verify_inclusion(leaf, index, size, path, altered_root)
    elsewhere = data.draw(st.integers(0, NUM_LEAVES).filter(lambda other: other != index))
    assert not verify_inclusion(LEAVES[index], elsewhere, size, proof, root)


@given(st.data(), st.integers(2, NUM_LEAVES))
@settings(max_examples=examples(300))
def test_no_altered_consistency_proof_holds(data: st.DataObject, size: int) -> None:
    old_size = data.draw(st.integers(1, size - 1))
    proof = consistency_proof(old_size, size, subtree)
    everything = [naive_root(LEAVES[:old_size]), *proof, naive_root(LEAVES[:size])]
    which = data.draw(st.integers(0, len(everything) - 1))
    everything[which] = flipped(everything[which], data)
    old_root, *path, root = everything
    assert not verify_consistency(old_size, size, path, old_root, root)


@given(st.data(), st.integers(2, NUM_LEAVES))
def test_trees_that_differ_in_the_old_part_are_never_consistent(data: st.DataObject, size: int) -> None:
    old_size = data.draw(st.integers(1, size - 1))
    altered = data.draw(st.integers(0, old_size - 1))
    other = [*LEAVES[:altered], leaf_hash(b"forged"), *LEAVES[altered + 1 : size]]

    def other_subtree(height: int, index: int) -> bytes:
        return perfect_root(other[index << height : (index + 1) << height])

    proof = consistency_proof(old_size, size, other_subtree)
    assert not verify_consistency(
        old_size, size, proof, naive_root(LEAVES[:old_size]), range_hash(0, size, other_subtree)
    )


def flipped(value: bytes, data: st.DataObject) -> bytes:
    bit = data.draw(st.integers(0, len(value) * 8 - 1))
    altered = bytearray(value)
    altered[bit // 8] ^= 1 << bit % 8
    return bytes(altered)
