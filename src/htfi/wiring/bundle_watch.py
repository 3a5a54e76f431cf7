"""The policy bundle that the nodes of a governance folder go by, as a run looks at it again and again."""

from pathlib import Path

from htfi.adapters.keys.ed25519 import verify_signature
from htfi.adapters.stores.adoption_folder import read_hold, read_nodes
from htfi.adapters.stores.bundle_folder import OFFICERS_FILE
from htfi.domain.errors import HtfiError, IntegrityError
from htfi.governance.bundles.bundle import PolicyBundle, parse_bundle, signers_of
from htfi.governance.bundles.changes import ChangeChecker, parse_change
from htfi.governance.bundles.in_force import (
    BundleActivated,
    BundleEntry,
    BundleInForce,
    BundleProposed,
    BundleRevoked,
    bundle_in_force,
)
from htfi.governance.control.requests import BundleOffer
from htfi.wiring.bundles import read_entries, read_roll, require_governance_folder
from htfi.wiring.governance_log import GOVERNANCE_DATABASE


class BundleWatch:
    """The bundle that the nodes of a governance folder go by; a look costs two `stat` where nothing changed."""

    def __init__(self, folder: Path) -> None:
        """Raises: InvalidInput where it is not a governance folder."""
        require_governance_folder(folder)
        self._folder = folder
        self._roll = read_roll(folder) if (folder / OFFICERS_FILE).exists() else None
        self._mark: tuple[int, ...] | None = None
        self._entries: list[BundleEntry] = []
        self._found = BundleInForce(None, "", None)
        self._nodes = read_nodes(folder)
        self._hold = ""

    def poll(self, now_ns: int) -> BundleOffer | None:
        """What to go by now, where that changed since the last look.

        A folder that cannot be read, or whose bundles do not hold, holds everything back: unknown means no.
        """
        mark, hold = self._files(), read_hold(self._folder, now_ns) if self._nodes else ""
        is_same = mark == self._mark and hold == self._hold
        if is_same and (self._found.until_ns is None or now_ns < self._found.until_ns):
            return None
        before, self._hold = self._found, hold
        try:
            if mark != self._mark:
                self._entries = self._verified()
            self._found = bundle_in_force(self._entries, now_ns)
        except HtfiError as error:
            self._found = BundleInForce(before.bundle, f"the governance folder cannot be used: {error}", None)
        self._mark = mark
        if hold:
            self._found = self._found._replace(stale=hold)
        if before[:2] == self._found[:2]:
            return None
        bundle, stale = self._found.bundle, self._found.stale
        if bundle is None:
            return BundleOffer(f"bundle-none-{now_ns}", now_ns, "", 0, "", stale)
        name = f"bundle-{bundle.head.number}-{bundle.digest[:8]}-{now_ns}"
        return BundleOffer(name, now_ns, bundle.digest, bundle.head.number, bundle.text, stale)

    def _verified(self) -> list[BundleEntry]:
        """The entries, each activation and revocation checked again. Raises: InvalidInput, IntegrityError, …"""
        entries = read_entries(self._folder)
        if not entries:
            return entries
        roll = self._roll = self._roll or read_roll(self._folder)
        check, chosen = ChangeChecker(roll, verify_signature), list[str]()
        for one in entries:
            if isinstance(one, BundleProposed):
                continue
            note, change = parse_change(one.note)
            if isinstance(change, PolicyBundle) != isinstance(one, BundleActivated) or (
                change.digest != one.digest
            ):
                raise IntegrityError(f"the entry on bundle {one.number} is not what its note states")
            if isinstance(one, BundleRevoked):
                objection = check(chosen, one.note, None)
                if not objection and one.by not in signers_of(note, roll, verify_signature):
                    objection = f"its revocation is not signed by {one.by}"
            else:
                expires_ns = parse_bundle(note.text).head.expires_ns
                objection = check(chosen, one.note, min(one.at_ns, (expires_ns or one.at_ns + 1) - 1))
            if objection:
                raise IntegrityError(f"the entry on bundle {one.number}: {objection}")
            chosen.append(one.note)
        return entries

    def _files(self) -> tuple[int, ...]:
        mark: list[int] = []
        for name in (GOVERNANCE_DATABASE, f"{GOVERNANCE_DATABASE}-wal"):
            try:
                about = (self._folder / name).stat()
                mark += (about.st_mtime_ns, about.st_size)
            except OSError:
                mark += (0, 0)
        return tuple(mark)
