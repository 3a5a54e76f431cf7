"""A change of the policy bundle is taken where a quorum signed it and it follows the others; else one line says why."""

from dataclasses import replace
from pathlib import Path

import pytest

from htfi.adapters.keys.ed25519 import SigningKey, signing_key, verify_signature
from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_S
from htfi.governance.bundles.adoption import (
    AdoptionRecord,
    AdoptionState,
    AdoptionTime,
    RefuseActivation,
    adoption_hold,
    receive,
    request_activation,
    start_adoption,
    tick,
)
from htfi.governance.bundles.bundle import (
    BundleHead,
    BundleKind,
    OfficerRoll,
    check_bundle_keys,
    parse_bundle,
    write_bundle,
)
from htfi.governance.bundles.changes import REVOCATION_HEADING, ChangeChecker, parse_change
from htfi.governance.bundles.in_force import BundleActivated, BundleRevoked, bundle_in_force
from htfi.governance.bundles.messages import AdoptionStatus
from htfi.governance.bundles.tables import BundleTables
from htfi.governance.config import PolicyConfig
from htfi.governance.ledger.note import NoteSignature, SignedNote
from htfi.wiring import bundles
from htfi.wiring.ledger import create_signing_key

START_NS = 1_767_225_600 * NS_PER_S
HOUR_NS = 3_600 * NS_PER_S
ANN, BEN, CID, EVE = (
    signing_key(name, bytes([k]) * 32) for k, name in enumerate(("ann", "ben", "cid", "eve"), 1)
)
ROLL = OfficerRoll(2, {key.name: key.verifier_key for key in (ANN, BEN, CID)})
CHECK = ChangeChecker(ROLL, verify_signature)


def signed(text: str, *keys: SigningKey) -> str:
    return str(
        SignedNote(
            text,
            tuple(NoteSignature(key.name, key.verifier_key.key_id, key.sign(text.encode())) for key in keys),
        )
    )


def bundle(
    number: int,
    before: str = "",
    *keys: SigningKey,
    width: float = 0.5,
    kind: BundleKind = BundleKind.QUORUM,
    start_ns: int = START_NS,
    expires_ns: int | None = None,
) -> str:
    previous = CHECK.entry_of(before, 0).digest if before else ""
    head = BundleHead(number, previous, kind, "ann", start_ns, expires_ns)
    tables = BundleTables(policy=replace(PolicyConfig(), max_band_width=width))
    return signed(write_bundle(head, tables), *(keys or (ANN, BEN)))


def emergency(number: int, before: str, width: float, *, hours: int = 2) -> str:
    return bundle(
        number, before, CID, width=width, kind=BundleKind.EMERGENCY, expires_ns=START_NS + hours * HOUR_NS
    )


FIRST = bundle(1)


def test_two_officers_activate_the_first_bundle_and_the_next() -> None:
    assert CHECK((), FIRST, START_NS) == ""
    assert CHECK((FIRST,), bundle(2, FIRST), START_NS) == ""


@pytest.mark.parametrize(
    ("note", "objection"),
    [
        (bundle(1, "", ANN), "has 1 of 2 signatures"),
        (bundle(1, "", ANN, ANN), "has 1 of 2 signatures"),
        (bundle(1, "", ANN, EVE), "eve is no officer"),
        (FIRST.replace("max_band_width = 0.5", "max_band_width = 0.9"), "was altered"),
        (bundle(1, "", start_ns=START_NS + 366 * 24 * HOUR_NS), "check both clocks"),
        (bundle(1, "", expires_ns=START_NS + NS_PER_S), "expired"),
        ("no bundle at all", "is not TOML"),
    ],
)
def test_a_note_that_no_quorum_signed_as_it_stands_is_refused(note: str, objection: str) -> None:
    assert objection in CHECK((), note, START_NS + NS_PER_S)


def test_an_older_bundle_that_is_replayed_is_refused() -> None:
    second = bundle(2, FIRST)
    assert "is older than bundle 2" in CHECK((FIRST, second), FIRST, START_NS)
    assert "does not follow" in CHECK((FIRST, second), bundle(3, FIRST), START_NS)


def test_an_emergency_bundle_of_one_officer_tightens_and_expires() -> None:
    assert CHECK((FIRST,), emergency(2, FIRST, 0.4), START_NS) == ""
    assert "policy.max_band_width is not surely tighter" in CHECK(
        (FIRST,), emergency(2, FIRST, 0.6), START_NS
    )
    endless = bundle(2, FIRST, CID, width=0.4, kind=BundleKind.EMERGENCY)
    assert "must expire" in CHECK((FIRST,), endless, START_NS)


def test_a_second_emergency_bundle_loosens_nothing_of_the_first() -> None:
    chosen = (FIRST, emergency(2, FIRST, 0.3))
    assert "looser than in emergency bundle 2" in CHECK(chosen, emergency(3, FIRST, 0.4), START_NS)
    assert "bundle.expires" in CHECK(chosen, emergency(3, FIRST, 0.2, hours=1), START_NS)
    assert CHECK(chosen, emergency(3, FIRST, 0.2), START_NS) == ""


def revocation(note: str, *keys: SigningKey) -> str:
    entry = CHECK.entry_of(note, 0)
    return signed(f"{REVOCATION_HEADING}{entry.number}\n{entry.digest}\nwrong limits\n", *keys)


def test_an_officer_revokes_what_was_activated_once() -> None:
    taken = revocation(FIRST, BEN)
    assert CHECK((FIRST,), taken, START_NS) == ""
    assert "only officers revoke" in CHECK((FIRST,), revocation(FIRST, EVE), START_NS)
    assert "never activated" in CHECK((), taken, START_NS)
    assert "revoked already" in CHECK((FIRST, taken), taken, START_NS)
    assert isinstance(CHECK.entry_of(taken, 5), BundleRevoked)
    assert parse_change(taken)[1] != parse_change(FIRST)[1]


def test_revoking_an_emergency_bundle_holds_back_instead_of_loosening() -> None:
    tight = emergency(2, FIRST, 0.4)
    entries = [CHECK.entry_of(note, START_NS) for note in (FIRST, tight, revocation(tight, ANN))]
    found = bundle_in_force(entries, START_NS + 1)
    assert found.bundle is not None
    assert found.bundle.tables.policy.max_band_width == 0.4
    assert found.stale == "bundle 2 was revoked by ann: wrong limits"
    assert bundle_in_force(entries, START_NS + 3 * HOUR_NS).stale == ""
    assert isinstance(entries[0], BundleActivated)


# Adoption between nodes.
NODES = ("a", "b", "c")
NOW = AdoptionTime(0.0, START_NS)


def node(record: AdoptionRecord | None = None) -> AdoptionState:
    return start_adoption("a", NODES, record or AdoptionRecord())[0]


def statuses(state: AdoptionState, num_chosen: int, ahead_ns: int, *peers: str) -> AdoptionState:
    for peer in peers:
        status = AdoptionStatus(num_chosen, "", START_NS + ahead_ns)
        state, _ = receive(state, peer, status, NOW, CHECK)
    return state


def test_a_node_whose_bundle_is_older_than_the_quorums_holds_and_says_so() -> None:
    state = statuses(node(), 1, 0, "b")
    assert adoption_hold(state) == "the quorum's newest bundle is not here: b has 1 changes, this node 0"
    # An older status that comes late does not end it.
    assert adoption_hold(statuses(state, 0, 0, "b")) == adoption_hold(state)
    assert adoption_hold(statuses(node(AdoptionRecord((FIRST,))), 1, 0, "b", "c")) == ""


def test_a_clock_two_hours_off_holds_and_says_so() -> None:
    assert adoption_hold(statuses(node(), 0, 2 * HOUR_NS, "b")) == ""  # one of two others: it may be that one
    assert adoption_hold(statuses(node(), 0, 2 * HOUR_NS, "b", "c")) == (
        "this machine's clock is 7200 s behind the clocks of 2 other nodes: set the clock"
    )
    assert "7200 s ahead of" in adoption_hold(statuses(node(), 0, -2 * HOUR_NS, "b", "c"))
    assert adoption_hold(statuses(node(), 0, 30 * NS_PER_S, "b", "c")) == ""


def test_a_bundle_of_one_signature_is_not_even_proposed_to_other_nodes() -> None:
    _, actions = request_activation(node(), bundle(1, "", ANN), NOW, CHECK)
    assert len(actions) == 1
    assert isinstance(actions[0], RefuseActivation)


def test_strangers_and_own_messages_change_nothing() -> None:
    state = node()
    for sender in ("a", "mallory"):
        assert receive(state, sender, AdoptionStatus(9, "", START_NS), NOW, CHECK) == (state, [])


def test_an_activation_under_way_goes_on_after_a_restart() -> None:
    before, _ = request_activation(node(), FIRST, NOW, CHECK)
    after, actions = tick(node(before.record), NOW, CHECK)
    assert after.attempt is not None
    assert after.attempt.ballot > before.record.promised
    assert len(actions) > 2


def test_a_bundle_that_another_has_replaced_is_not_said_to_hold(tmp_path: Path) -> None:
    folder, key = tmp_path / "G", tmp_path / "ann.key"
    bundles.init_folder(folder, 1, [("ann", str(create_signing_key(key, "ann")))])
    files = [tmp_path / "1.toml", tmp_path / "2.toml"]
    for width, file in zip(("0.4", "0.3"), files, strict=True):
        draft = bundles.draft_bundle(folder, "ann", [f"policy.max_band_width={width}"])
        bundles.write_draft(file, draft)
        bundles.sign_bundle(file, key)
        bundles.activate_bundle(folder, file)
    with pytest.raises(InvalidInput, match="bundle 1 is older than bundle 2"):
        bundles.activate_bundle(folder, files[0])
    again, _ = bundles.activate_bundle(folder, files[1])
    assert again.head.number == 2


def test_a_bundle_with_a_misspelled_limit_of_a_scope_is_not_signed(tmp_path: Path) -> None:
    """One that is in a governance log already is still read."""
    head = BundleHead(1, "", BundleKind.QUORUM, "ann", START_NS, None)
    misspelled = 'by_scope = { "desk:a" = { max_order_valu = 1.0 } }'
    text = write_bundle(head, BundleTables()).replace("by_scope = {  }", misspelled)
    assert parse_bundle(text).tables.order_limits.by_scope["desk:a"].max_order_value is None
    with pytest.raises(
        InvalidInput, match=r"by_scope\.desk:a: unknown key 'max_order_valu'.*max_order_value"
    ):
        check_bundle_keys(text)
