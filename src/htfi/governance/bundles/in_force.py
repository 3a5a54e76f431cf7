"""Which bundle is in force, from the governance log of an installation: a pure function of its entries and the time."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from htfi.domain.errors import IntegrityError
from htfi.domain.time import NS_PER_S, format_ns
from htfi.governance.bundles.bundle import BundleKind, PolicyBundle, parse_bundle
from htfi.governance.ledger.note import parse_note

MAX_CLOCK_LAG_NS = 60 * NS_PER_S  # of a node behind what the log has seen


class BundleProposed(msgspec.Struct, frozen=True, tag_field="kind", tag="bundle_proposed"):
    """A bundle was put before the officers, signed by some of them."""

    at_ns: int
    number: int
    digest: str
    author: str
    signers: tuple[str, ...]


class BundleActivated(msgspec.Struct, frozen=True, tag_field="kind", tag="bundle_activated"):
    """A bundle that enough officers have signed; `note` is its text with their signatures."""

    at_ns: int
    number: int
    digest: str
    signers: tuple[str, ...]
    note: str


class BundleRevoked(msgspec.Struct, frozen=True, tag_field="kind", tag="bundle_revoked"):
    """An officer takes a bundle back: until another is activated nothing is released. `note` is the signed word."""

    at_ns: int
    number: int
    digest: str
    by: str
    why: str
    note: str


BundleEntry = BundleProposed | BundleActivated | BundleRevoked

_DECODER = msgspec.json.Decoder(BundleEntry)
_KIND = msgspec.json.Decoder(type("_Kind", (msgspec.Struct,), {"__annotations__": {"kind": str}}))
_KINDS = frozenset({"bundle_proposed", "bundle_activated", "bundle_revoked"})


class BundleInForce(NamedTuple):
    """What a node goes by: the bundle, None where there is none yet; why nothing may be released, empty where it may.

    `until_ns` is when this may change by itself.
    """

    bundle: PolicyBundle | None
    stale: str
    until_ns: int | None


def bundle_entries(entries: Iterable[bytes]) -> list[BundleEntry]:
    """The entries of a governance log that are about bundles. Raises: IntegrityError."""
    found: list[BundleEntry] = []
    for entry in entries:
        try:
            if _KIND.decode(entry).kind in _KINDS:  # type: ignore[attr-defined]
                found.append(_DECODER.decode(entry))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise IntegrityError(f"an entry of the governance log cannot be read: {error}") from error
    return found


def newest_quorum(entries: Iterable[BundleEntry]) -> PolicyBundle | None:
    """The newest bundle that the quorum signed and that was activated, valid already or later."""
    found = [_bundle(one) for one in entries if isinstance(one, BundleActivated)]
    return next((one for one in reversed(found) if one.head.kind is BundleKind.QUORUM), None)


def bundle_in_force(entries: Iterable[BundleEntry], now_ns: int) -> BundleInForce:
    """What a node goes by at an instant. Unknown means no: what ended without a successor holds everything back."""
    entries = list(entries)
    revoked = {one.digest: one for one in entries if isinstance(one, BundleRevoked)}
    activated = [_bundle(one) for one in entries if isinstance(one, BundleActivated)]
    newest_ns = max((one.at_ns for one in entries), default=0)
    if newest_ns > now_ns + MAX_CLOCK_LAG_NS:
        stale = (
            f"this machine's clock says {format_ns(now_ns)}, but the governance log has an entry of "
            f"{format_ns(newest_ns)}: set the clock"
        )
        return BundleInForce(activated[-1] if activated else None, stale, newest_ns - MAX_CLOCK_LAG_NS)
    starts = [one.head.valid_from_ns for one in activated if one.head.valid_from_ns > now_ns]
    begun = [one for one in activated if one.head.valid_from_ns <= now_ns]
    quorum = next((one for one in reversed(begun) if one.head.kind is BundleKind.QUORUM), None)
    emergency = next(
        (
            one
            for one in reversed(begun)
            if one.head.kind is BundleKind.EMERGENCY
            and one.head.previous == (quorum.digest if quorum is not None else "")
            and (one.head.expires_ns or 0) > now_ns
        ),
        None,
    )
    bundle = emergency or quorum
    if bundle is None:
        return BundleInForce(None, "", min(starts, default=None))
    ends = [one.head.expires_ns for one in (emergency, quorum) if one is not None and one.head.expires_ns]
    until_ns = min([*starts, *(end for end in ends if end > now_ns)], default=None)
    # One officer may not loosen: what a revoked emergency bundle tightened is not released either.
    taken = next(
        (revoked[one.digest] for one in (quorum, emergency) if one is not None and one.digest in revoked),
        None,
    )
    if taken is not None:
        stale = f"bundle {taken.number} was revoked by {taken.by}: {taken.why}"
    elif quorum is not None and quorum.head.expires_ns is not None and quorum.head.expires_ns <= now_ns:
        stale = f"bundle {quorum.head.number} expired at {format_ns(quorum.head.expires_ns)}"
    else:
        stale = ""
    return BundleInForce(bundle, stale, until_ns)


def _bundle(entry: BundleActivated) -> PolicyBundle:
    return parse_bundle(parse_note(entry.note).text)
