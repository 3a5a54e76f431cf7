"""Gossip: claims merge to the same whatever their order and repetition; nodes refute what is wrongly said of them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.scheduling.health import membership
from htfi.scheduling.health.config import FORGET_MS, HealthConfig
from htfi.scheduling.health.membership import MembershipTable
from htfi.scheduling.health.messages import MAX_INCARNATION, MembershipClaim, NodeStatus

CONFIG = HealthConfig()
ME = "edge"
NORTH = MembershipClaim("north", 0, NodeStatus.ALIVE)  # as it says of itself
NAMES = ("edge", "north", "south", "west")

claims = st.builds(
    MembershipClaim,
    st.sampled_from(NAMES),
    st.integers(0, 4) | st.just(MAX_INCARNATION),
    st.sampled_from(NodeStatus),
)


def _members() -> MembershipTable:
    return MembershipTable(MembershipClaim(ME, 0, NodeStatus.ALIVE), {})


def _merged(told: list[MembershipClaim]) -> MembershipTable:
    members = _members()
    for claim in told:
        members = membership.merge(members, claim, 1.0)
    return members


def _held(members: MembershipTable) -> dict[str, MembershipClaim]:
    return {node: known.claim for node, known in members.others.items()}


@given(st.lists(claims, max_size=20).flatmap(lambda told: st.tuples(st.just(told), st.permutations(told))))
def test_the_order_of_claims_does_not_matter(
    both: tuple[list[MembershipClaim], list[MembershipClaim]],
) -> None:
    told, shuffled = both
    assert _held(_merged(told)) == _held(_merged(shuffled))


@given(st.lists(claims, max_size=20))
def test_a_claim_told_again_changes_nothing(told: list[MembershipClaim]) -> None:
    members = _merged(told)
    others = [claim for claim in told if claim.node != ME]
    assert all(membership.merge(members, claim, 2.0) is members for claim in others)


@given(st.lists(claims, max_size=20), st.lists(claims, max_size=20))
def test_tables_that_exchange_their_claims_agree(
    here: list[MembershipClaim], there: list[MembershipClaim]
) -> None:
    a, b = _merged(here), _merged(there)
    from_a, from_b = list(_held(a).values()), list(_held(b).values())
    for claim in from_b:
        a = membership.merge(a, claim, 2.0)
    for claim in from_a:
        b = membership.merge(b, claim, 2.0)
    assert _held(a) == _held(b)


@given(
    st.lists(claims, max_size=20),
    st.sampled_from((NodeStatus.ALIVE, NodeStatus.DEGRADED, NodeStatus.DRAINING)),
)
def test_a_node_refutes_what_others_say_of_it_and_keeps_its_standing(
    told: list[MembershipClaim], standing: NodeStatus
) -> None:
    members = membership.declare_status(_members(), standing)
    for claim in told:
        after = membership.merge(members, claim, 1.0)
        assert after.me.status is standing
        assert after.me.incarnation <= MAX_INCARNATION  # or no peer could read it
        assert after.me.incarnation >= members.me.incarnation
        if claim.node == ME and claim.incarnation < MAX_INCARNATION:
            assert not membership.wins(claim, after.me)
        members = after


@settings(max_examples=examples(30))
@given(st.integers(1, 40), st.integers(1, 6))
def test_every_claim_reaches_a_peer_though_beats_carry_few(num_nodes: int, num_claims: int) -> None:
    members = _members()
    for index in range(num_nodes):
        members = membership.merge(members, MembershipClaim(f"node-{index}", 1, NodeStatus.ALIVE), 1.0)
    reached: set[str] = set()
    num_passed = 0
    for _ in range(num_nodes * 12):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("htfi.scheduling.health.membership.NUM_CLAIMS", num_claims)
            members, chosen = membership.choose_claims(members, NORTH)
        assert len(chosen) <= num_claims + 1
        reached |= {claim.node for claim in chosen}
        num_passed += len(chosen)
    assert reached == {f"node-{index}" for index in range(num_nodes)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("htfi.scheduling.health.membership.NUM_CLAIMS", num_claims)
        _, chosen = membership.choose_claims(members, NORTH)
    assert len(chosen) <= 1  # news has an end; one claim goes round


@pytest.mark.parametrize("standing", NodeStatus)
def test_a_peer_is_told_first_what_is_held_of_it_until_it_says_so_too(standing: NodeStatus) -> None:
    held = MembershipClaim("north", 3, standing)
    members = _merged([held, MembershipClaim("south", 0, NodeStatus.ALIVE)])
    for _ in range(100):
        members, chosen = membership.choose_claims(members, NORTH)
        assert chosen[0] == held
    for _ in range(100):
        members, chosen = membership.choose_claims(members, held)
        assert held not in chosen


def test_a_suspicion_becomes_death_unless_refuted_or_vouched_for() -> None:
    told = [MembershipClaim(name, 1, NodeStatus.SUSPECT) for name in ("north", "south", "west")]
    members = _merged(told)
    members = membership.merge(members, MembershipClaim("south", 2, NodeStatus.ALIVE), 2.0)
    late_s = 1.0 + CONFIG.suspect_ms / 1e3
    assert membership.expire_suspicions(members, {"west"}, late_s - 0.01, CONFIG) is members
    members = membership.expire_suspicions(members, {"west"}, late_s, CONFIG)
    assert _held(members) == {
        "north": MembershipClaim("north", 1, NodeStatus.DEAD),
        "south": MembershipClaim("south", 2, NodeStatus.ALIVE),
        "west": MembershipClaim("west", 1, NodeStatus.SUSPECT),
    }
    members = membership.expire_suspicions(members, set(), late_s + FORGET_MS / 1e3, CONFIG)
    assert "north" not in members.others


def test_a_full_table_takes_newcomers_in_the_place_of_the_dead_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htfi.scheduling.health.membership.NUM_MEMBERS", 2)
    members = _members()
    for claim in (
        MembershipClaim("a", 0, NodeStatus.ALIVE),
        MembershipClaim("b", 0, NodeStatus.DEAD),
        MembershipClaim("c", 0, NodeStatus.ALIVE),
    ):
        members = membership.merge(members, claim, 1.0)
    assert set(members.others) == {"a", "c"}
    assert membership.merge(members, MembershipClaim("d", 0, NodeStatus.ALIVE), 1.0) is members
