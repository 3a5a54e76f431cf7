"""A change of the policy bundle as a signed note, an activation or a revocation: whether it may follow the others.

Nodes judge it before they accept it (`adoption.py`), each by its own roll of officers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from htfi.domain.errors import HtfiError, InvalidInput
from htfi.domain.time import NS_PER_S
from htfi.governance.bundles.bundle import (
    BundleKind,
    OfficerRoll,
    PolicyBundle,
    check_bundle,
    parse_bundle,
    read_note,
    signers_of,
)
from htfi.governance.bundles.in_force import BundleActivated, BundleRevoked
from htfi.governance.bundles.tables import ChangeDirection, changes
from htfi.governance.ledger.note import SignedNote
from htfi.governance.ports import VerifySignature

REVOCATION_HEADING = "htfi: revoke the policy bundle\n"
MAX_LEAD_NS = 365 * 86_400 * NS_PER_S  # a bundle that is valid later than that is of a wrong clock


@dataclass(frozen=True, slots=True)
class BundleRevocation:
    """An officer's word that takes a bundle back."""

    number: int
    digest: str
    why: str


@lru_cache(maxsize=64)
def parse_change(content: str) -> tuple[SignedNote, PolicyBundle | BundleRevocation]:
    """The change that a note states. Raises: InvalidInput."""
    note = read_note(content, "the change")
    if not note.text.startswith(REVOCATION_HEADING):
        return note, parse_bundle(note.text)
    lines = note.text.removeprefix(REVOCATION_HEADING).split("\n")
    if len(lines) != 4 or lines[3] or not (lines[0].isascii() and lines[0].isdecimal()) or len(lines[0]) > 6:
        raise InvalidInput("the revocation: expected a bundle's number, its digest and a reason, a line each")
    return note, BundleRevocation(int(lines[0]), lines[1], lines[2])


@dataclass(frozen=True, slots=True)
class ChangeChecker:
    """Judges changes by a roll of officers; implements `CheckChange`."""

    roll: OfficerRoll
    verify: VerifySignature

    def __call__(self, chosen: Sequence[str], content: str, now_ns: int | None) -> str:
        """The objection to a change after those that are chosen; empty where there is none.

        Without a time only what holds for good is judged: signatures, numbers, what it follows, what it tightens.
        """
        try:
            note, change = parse_change(content)
            before = [parse_change(one)[1] for one in chosen]
            if isinstance(change, BundleRevocation):
                self._check_revocation(note, change, before)
            else:
                self._check_activation(note, change, before, now_ns)
        except HtfiError as error:
            return str(error)
        return ""

    def entry_of(self, content: str, at_ns: int) -> BundleActivated | BundleRevoked:
        """What the governance log holds of a chosen change. Raises: InvalidInput, IntegrityError."""
        note, change = parse_change(content)
        signers = tuple(signers_of(note, self.roll, self.verify))
        if isinstance(change, BundleRevocation):
            by = signers[0] if signers else ""
            return BundleRevoked(at_ns, change.number, change.digest, by, change.why, content)
        return BundleActivated(at_ns, change.head.number, change.digest, signers, content)

    def _check_revocation(
        self, note: SignedNote, change: BundleRevocation, before: Sequence[PolicyBundle | BundleRevocation]
    ) -> None:
        if not signers_of(note, self.roll, self.verify):
            raise InvalidInput("a revocation must be signed by an officer: only officers revoke")
        known = [one.digest for one in before if isinstance(one, PolicyBundle)]
        if change.digest not in known:
            raise InvalidInput(f"bundle {change.number} was never activated, so it cannot be revoked")
        if any(isinstance(one, BundleRevocation) and one.digest == change.digest for one in before):
            raise InvalidInput(f"bundle {change.number} is revoked already")

    def _check_activation(
        self,
        note: SignedNote,
        change: PolicyBundle,
        before: Sequence[PolicyBundle | BundleRevocation],
        now_ns: int | None,
    ) -> None:
        activated = [one for one in before if isinstance(one, PolicyBundle)]
        head = change.head
        quorum = next((one for one in reversed(activated) if one.head.kind is BundleKind.QUORUM), None)
        instant_ns = head.valid_from_ns if now_ns is None else now_ns
        check_bundle(note, self.roll, self.verify, quorum, instant_ns, MAX_LEAD_NS)
        newest = max((one.head.number for one in activated), default=0)
        if head.number <= newest:
            raise InvalidInput(f"bundle {head.number} is older than bundle {newest}: draft a new one")
        if head.kind is BundleKind.EMERGENCY:
            _check_no_looser(change, before)


def _check_no_looser(change: PolicyBundle, before: Sequence[PolicyBundle | BundleRevocation]) -> None:
    """Raises: InvalidInput where an emergency bundle loosens the one that still holds, or shortens it."""
    head = change.head
    for one in before:
        if not isinstance(one, PolicyBundle) or one.head.kind is not BundleKind.EMERGENCY:
            continue
        expires_ns = one.head.expires_ns or 0
        if one.head.previous != head.previous or expires_ns <= head.valid_from_ns:
            continue
        loose = [
            each.name
            for each in changes(one.tables, change.tables)
            if each.kind is not ChangeDirection.TIGHTER
        ]
        if (head.expires_ns or 0) < expires_ns:
            loose.append("bundle.expires")
        if loose:
            raise InvalidInput(
                f"an emergency bundle may only tighten, and {', '.join(loose)} is looser than in emergency bundle "
                f"{one.head.number}, which still holds: let the quorum sign"
            )
