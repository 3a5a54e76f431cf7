"""Gossip: claims merge to the same whatever their order and repetition; nodes refute what is wrongly said of them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.scheduling.health import membership
from htfi.scheduling.health.config import HealthConfig
from htfi.scheduling.health.membership import Members
from htfi.scheduling.health.messages import MAX_INCARNATION, Claim, Standing

CONFIG = HealthConfig()
ME = "edge"
NORTH = Claim("north", 0, Standing.ALIVE)  # as it says of itself
NAMES = ("edge", "north", "south", "west")

claims = st.builds(
    Claim, st.sampled_from(NAMES), st.integers(0, 4) | st.just(MAX_INCARNATION), st.sampled_from(Standing)
)


def _members() -> Members:
    return Members(Claim(ME, 0, Standing.ALIVE), {})


def _merged(told: list[Claim]) -> Members:
    members = _members()
    for claim in told:
        members = membership.merge(members, claim, 1.0, CONFIG)
    return members


def _held(members: Members) -> dict[str, Claim]:
    return {node: known.claim for node, known in members.others.items()}


@given(st.lists(claims, max_size=20).flatmap(lambda told: st.tuples(st.just(told), st.permutations(told))))
def test_the_order_of_claims_does_not_matter(both: tuple[list[Claim], list[Claim]]) -> None:
    told, shuffled = both
    assert _held(_merged(told)) == _held(_merged(shuffled))


@given(st.lists(claims, max_size=20))
def test_a_claim_told_again_changes_nothing(told: list[Claim]) -> None:
    members = _merged(told)
    for claim in told:
        if claim.node != ME:
            assert membership.merge(members, claim, 2.0, CONFIG) is members


@given(st.lists(claims, max_size=20), st.lists(claims, max_size=20))
def test_tables_that_exchange_their_claims_agree(here: list[Claim], there: list[Claim]) -> None:
    a, b = _merged(here), _merged(there)
    from_a, from_b = list(_held(a).values()), list(_held(b).values())
    for claim in from_b:
        a = membership.merge(a, claim, 2.0, CONFIG)
    for claim in from_a:
        b = membership.merge(b, claim, 2.0, CONFIG)
    assert _held(a) == _held(b)


@given(st.lists(claims, max_size=20), st.sampled_from((Standing.ALIVE, Standing.ILL, Standing.DRAINING)))
def test_a_node_refutes_what_others_say_of_it_and_keeps_its_standing(
    told: list[Claim], standing: Standing
) -> None:
    members = membership.declare(_members(), standing)
    for claim in told:
        after = membership.merge(members, claim, 1.0, CONFIG)
        assert after.me.standing is standing
        assert after.me.incarnation <= MAX_INCARNATION  # or no peer could read it
        assert after.me.incarnation >= members.me.incarnation
        if claim.node == ME and claim.incarnation < MAX_INCARNATION:
            assert not membership.wins(claim, after.me)
        members = after


@settings(max_examples=examples(30))
@given(st.integers(1, 40), st.integers(1, 6))
def test_every_claim_reaches_a_peer_though_beats_carry_few(num_nodes: int, num_claims: int) -> None:
    config = HealthConfig(num_claims=num_claims)
    members = _members()
    for index in range(num_nodes):
        members = membership.merge(members, Claim(f"node-{index}", 1, Standing.ALIVE), 1.0, config)
    reached: set[str] = set()
    num_passed = 0
    for _ in range(num_nodes * 12):
        members, chosen = membership.pick(members, NORTH, config)
        assert len(chosen) <= num_claims + 1
        reached |= {claim.node for claim in chosen}
        num_passed += len(chosen)
    assert reached == {f"node-{index}" for index in range(num_nodes)}
    _, chosen = membership.pick(members, NORTH, config)
    assert len(chosen) <= 1  # news has an end; one claim goes round


@pytest.mark.parametrize("standing", Standing)
def test_a_peer_is_told_first_what_is_held_of_it_until_it_says_so_too(standing: Standing) -> None:
    held = Claim("north", 3, standing)
    members = _merged([held, Claim("south", 0, Standing.ALIVE)])
    for _ in range(100):
        members, chosen = membership.pick(members, NORTH, CONFIG)
        assert chosen[0] == held
    for _ in range(100):
        members, chosen = membership.pick(members, held, CONFIG)
        assert held not in chosen


def test_a_suspicion_becomes_death_unless_refuted_or_vouched_for() -> None:
    told = [Claim(name, 1, Standing.SUSPECT) for name in ("north", "south", "west")]
    members = _merged(told)
    members = membership.merge(members, Claim("south", 2, Standing.ALIVE), 2.0, CONFIG)
    late_s = 1.0 + CONFIG.suspect_ms / 1e3
    assert membership.lapse(members, {"west"}, late_s - 0.01, CONFIG) is members
    members = membership.lapse(members, {"west"}, late_s, CONFIG)
    assert _held(members) == {
        "north": Claim("north", 1, Standing.DEAD),
        "south": Claim("south", 2, Standing.ALIVE),
        "west": Claim("west", 1, Standing.SUSPECT),
    }
    members = membership.lapse(members, set(), late_s + CONFIG.forget_ms / 1e3, CONFIG)
    assert "north" not in members.others


def test_a_full_table_takes_newcomers_in_the_place_of_the_dead_only() -> None:
    config = HealthConfig(num_members=2)
    members = _members()
    for claim in (Claim("a", 0, Standing.ALIVE), Claim("b", 0, Standing.DEAD), Claim("c", 0, Standing.ALIVE)):
        members = membership.merge(members, claim, 1.0, config)
    assert set(members.others) == {"a", "c"}
    assert membership.merge(members, Claim("d", 0, Standing.ALIVE), 1.0, config) is members
