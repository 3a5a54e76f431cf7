"""No two nodes ever go by different changes, whatever the network does and whenever nodes are killed."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from bundle_network import NODES, BundleNetwork
from examples import examples

NUM_ACTS = 600


def agree(net: BundleNetwork) -> bool:
    """Whether of any two nodes one has applied a beginning of what the other has."""
    longest = max(net.applied.values(), key=len)
    return all(applied == longest[: len(applied)] for applied in net.applied.values())


def act(net: BundleNetwork, rng: random.Random) -> None:
    net.now_s += rng.expovariate(100.0)
    chance, node = rng.random(), rng.choice(NODES)
    if chance < 0.70:
        net.deliver()
    elif chance < 0.90:
        net.tick(node)
    elif chance < 0.93:
        number = len(net.saved[node].chosen) + 1
        net.ask(node, f"{number}:of {node} at {net.now_s:.4f}")
    elif chance < 0.95:
        net.kill_at = rng.randrange(12)
    elif chance < 0.98:
        if node not in net.states:
            net.start(node)
    else:
        net.side = {each: rng.randrange(2) for each in NODES}


@settings(max_examples=examples(400))
@given(st.integers(0, 2**32))
def test_nodes_agree_through_cuts_kills_and_disorder(seed: int) -> None:
    rng = random.Random(seed)
    net = BundleNetwork(rng)
    for _ in range(NUM_ACTS):
        act(net, rng)
        assert agree(net), f"seed {seed}: {net.applied}"
    net.settle()
    assert agree(net), f"seed {seed}: {net.applied}"
    assert len({len(applied) for applied in net.applied.values()}) == 1, f"seed {seed}: {net.applied}"
    assert not any(record.wanted for record in net.saved.values()), f"seed {seed}: an activation was given up"


@settings(max_examples=examples(200))
@given(st.integers(0, 2**32), st.integers(0, 40))
def test_a_minority_that_is_cut_off_while_activating_activates_nothing(seed: int, after: int) -> None:
    rng = random.Random(seed)
    net = BundleNetwork(rng, loss=0.0)
    minority, majority = NODES[:2], NODES[2:]
    net.ask("a", "1:one")
    for _ in range(after):
        net.deliver()
    # Acknowledged beyond the cut: the minority may hold a majority's acknowledgements already.
    was_acknowledged = any(net.saved[node].accepted or net.applied[node] for node in majority)
    net.side = {node: int(node in majority) for node in NODES}
    net.ask("b", "1:two")
    for _ in range(200):
        net.now_s += 0.02
        for node in minority:
            net.tick(node)
        for _ in range(10):
            net.deliver()
    if not was_acknowledged:
        assert [net.applied[node] for node in minority] == [[], []]
    net.ask("c", "1:three")
    for _ in range(300):
        net.now_s += 0.02
        for node in NODES:
            net.tick(node)
        for _ in range(20):
            net.deliver()
    assert all(len(net.applied[node]) == 1 for node in majority)
    assert agree(net), f"seed {seed}: {net.applied}"


@settings(max_examples=examples(100))
@given(st.integers(0, 2**32))
def test_of_four_nodes_cut_in_halves_neither_half_activates_and_both_agree_once_linked(seed: int) -> None:
    net = BundleNetwork(random.Random(seed), loss=0.0, nodes=NODES[:4])
    net.side = {node: int(node in "cd") for node in net.nodes}
    net.ask("a", "1:one")
    net.ask("c", "1:two")
    for _ in range(100):
        net.now_s += 0.02
        for node in net.nodes:
            net.tick(node)
        for _ in range(10):
            net.deliver()
    assert [net.applied[node] for node in net.nodes] == [[], [], [], []]
    net.settle()
    assert [len(net.applied[node]) for node in net.nodes] == [1, 1, 1, 1], f"seed {seed}: {net.applied}"
    assert agree(net), f"seed {seed}: {net.applied}"
