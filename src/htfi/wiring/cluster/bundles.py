"""A node's part in the agreement on policy bundles: its files, its governance log, and its messages to other nodes."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import msgspec

from htfi.adapters.keys.ed25519 import load_key, verify_signature
from htfi.adapters.stores.adoption_folder import (
    end_activation,
    read_activations,
    read_adoption,
    read_nodes,
    read_refusal,
    write_activation,
    write_adoption,
    write_hold,
    write_nodes,
)
from htfi.adapters.stores.snapshot import read_whole
from htfi.domain.errors import HtfiError, IntegrityError, InvalidInput
from htfi.governance.bundles.adoption import (
    AdoptionAction,
    AdoptionRecord,
    AdoptionState,
    AdoptionTime,
    ApplyChange,
    RefuseActivation,
    SaveRecord,
    SendAdoption,
    adoption_hold,
    receive,
    request_activation,
    start_adoption,
    tick,
)
from htfi.governance.bundles.bundle import OfficerRoll, parse_officers
from htfi.governance.bundles.changes import ChangeChecker
from htfi.governance.bundles.in_force import BundleActivated, BundleRevoked, bundle_entries, bundle_in_force
from htfi.governance.bundles.messages import decode_adoption, encode_adoption
from htfi.governance.ledger.note import NoteSignature, SignedNote
from htfi.wiring.governance_log import open_governance_log, read_governance_log

Bodies = Sequence[tuple[str, bytes]]
WORD_S = 0.25  # how often the runs of the folder are told
_TURN_S = 0.05  # the next tick tries again, and peers wait for this thread
_RECORD = msgspec.json.Decoder(AdoptionRecord)


def name_nodes(folder: Path, nodes: Sequence[str]) -> None:
    """Name the nodes that agree on the bundles of a governance folder. Raises: InvalidInput, DependencyUnavailable."""
    if read_nodes(folder):
        raise InvalidInput(f"{folder} has its nodes already: they change by a new governance folder")
    write_nodes(folder, nodes)


def sign_change(text: str, keys: Sequence[Path]) -> str:
    """The note of a change's text, signed with the keys in these files. Raises: InvalidInput, DependencyUnavailable."""
    signers = [load_key(path) for path in keys]
    signatures = [
        NoteSignature(one.name, one.verifier_key.key_id, one.sign(text.encode())) for one in signers
    ]
    return str(SignedNote(text, tuple(signatures)))


def ask_activation(folder: Path, note: str) -> str:
    """Ask the node that runs on this folder to have a change activated; the request's name. It outlives a crash.

    Raises: DependencyUnavailable.
    """
    name = sha256(note.encode()).hexdigest()[:16]
    write_activation(folder, name, note)
    return name


def activation_refusal(folder: Path, name: str) -> str:
    """Why the node refused; empty where it did not. Raises: DependencyUnavailable."""
    return read_refusal(folder, name)


def _read_officers(folder: Path) -> OfficerRoll:
    path = folder / "officers.toml"
    data = read_whole(path)
    if data is None:
        raise InvalidInput(f"{folder} is not a governance folder: make one with `htfi policy init {folder}`")
    return parse_officers(data.decode(errors="replace"), str(path))


class ClusterBundles:
    """Implements `BundleExchange` on a governance folder. All calls from one thread, but `hold` from any.

    A failure of the disk never reaches the caller: it holds everything back until a later tick succeeds.
    """

    def __init__(
        self,
        folder: Path,
        node: str,
        *,
        on_applied: Callable[[str], None] = lambda _: None,
        clock_ns: Callable[[], int] = time.time_ns,
        running_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`on_applied` gets the digest of each change that is put in force.

        Raises: InvalidInput where the folder names no nodes, or not this one; IntegrityError, DependencyUnavailable.
        """
        self._folder, self._on_applied = folder, on_applied
        self._clock_ns, self._running_s = clock_ns, running_s
        self._check = ChangeChecker(_read_officers(folder), verify_signature)
        saved = read_adoption(folder)
        try:
            record = AdoptionRecord() if saved is None else _RECORD.decode(saved)
        except msgspec.DecodeError as error:
            raise IntegrityError(f"{folder}: what this node saved cannot be read: {error}") from error
        log = read_governance_log(folder)
        entries = [] if log is None else bundle_entries(log.entries())
        if log is not None:
            log.close()
        self._entries = [one for one in entries if isinstance(one, BundleActivated | BundleRevoked)]
        if saved is None and self._entries:
            raise InvalidInput(
                f"{folder} has bundles but not what this node acknowledged: name the nodes before the first bundle, "
                "or restore the folder's adoption.state"
            )
        self._to_apply: list[str] = []
        self._to_send: list[tuple[str, bytes]] = []
        self._requested: dict[str, str] = {}  # names of requests by their note
        self.unwritten_stop = ""  # why a stop that a peer told is not in the folder
        self._failure, self._stale, self._until_ns = "", "", 0
        self._word, self._word_until_s = "", 0.0  # what the runs of this folder have read last
        self._state, actions = start_adoption(node, read_nodes(folder), record)
        self._do(self._state, actions)
        self._apply()

    def hold(self) -> str:
        """Why this node must release nothing; empty where it may."""
        return self.unwritten_stop or self._failure or adoption_hold(self._state) or self._stale

    def received(self, peer: str, body: bytes) -> Bodies:
        self._guarded(lambda: self._receive(peer, body), is_tick=False)
        return self._drain()

    def due(self) -> Bodies:
        self._guarded(self._tick, is_tick=True)
        self._leave_word()
        return self._drain()

    def _leave_word(self) -> None:
        """Tell the runs of this folder whether they may release, at once where that changed."""
        now_s, why = self._running_s(), self.hold()
        if why == self._word and now_s < self._word_until_s:
            return
        with suppress(OSError):  # runs hold everything back where no word is left
            write_hold(self._folder, why)
            self._word, self._word_until_s = why, now_s + WORD_S

    def _guarded(self, act: Callable[[], None], *, is_tick: bool) -> None:
        """A failure lasts until a whole tick succeeds."""
        try:
            act()
            if is_tick:
                self._failure = ""
        except HtfiError as error:
            self._failure = f"this node cannot take part in bundles: {error}"

    def _drain(self) -> Bodies:
        found, self._to_send = self._to_send, []
        return found

    def _now(self) -> AdoptionTime:
        return AdoptionTime(self._running_s(), self._clock_ns())

    def _receive(self, peer: str, body: bytes) -> None:
        try:
            message = decode_adoption(body)
        except InvalidInput:  # of another version, or hostile: no reason to stop here
            return
        self._do(*receive(self._state, peer, message, self._now(), self._check))
        self._apply()

    def _tick(self) -> None:
        now = self._now()
        for name, note in read_activations(self._folder):
            self._requested[note] = name
            self._do(*request_activation(self._state, note, now, self._check), asked=note)
            end_activation(self._folder, name)
        self._do(*tick(self._state, now, self._check))
        self._apply()
        if now.clock_ns >= self._until_ns:
            self._look(now.clock_ns)

    def _do(self, state: AdoptionState, actions: Sequence[AdoptionAction], asked: str = "") -> None:
        """Carry out the actions. The state counts once it is saved: a node that cannot save has not promised."""
        wanted = asked or self._state.record.wanted
        for action in actions:
            match action:
                case SaveRecord():
                    write_adoption(self._folder, msgspec.json.encode(action.record))
                case ApplyChange():
                    self._to_apply.append(action.note)
                case SendAdoption():
                    self._to_send.append((action.to, encode_adoption(action.message)))
                case RefuseActivation():
                    name = self._requested.pop(wanted, sha256(wanted.encode()).hexdigest()[:16])
                    end_activation(self._folder, name, action.why)
        self._state = state

    def _apply(self) -> None:
        """Record chosen changes in the governance log, those that a crash left out too."""
        if not self._to_apply:
            return
        known = {one.note for one in self._entries}
        new = [note for note in dict.fromkeys(self._to_apply) if note not in known]
        if new:
            now_ns = self._clock_ns()
            entries = [self._check.entry_of(note, now_ns) for note in new]
            log = open_governance_log(self._folder, _TURN_S)
            try:
                log.append([msgspec.json.encode(one) for one in entries])
            finally:
                log.close()
            self._entries += entries
            for one in entries:
                self._on_applied(one.digest)
        self._to_apply.clear()
        self._until_ns = 0

    def _look(self, now_ns: int) -> None:
        found = bundle_in_force(self._entries, now_ns)
        digest = found.bundle.digest if found.bundle is not None else ""
        self._state = replace(self._state, digest=digest)
        self._stale = found.stale
        self._until_ns = found.until_ns if found.until_ns is not None else 1 << 62
