"""Governance on the main path: which decisions it holds back, and the log of what changed during a run.

A change is logged before anything that follows it is released. It states the index of the first decision that it
applies to, so that a resumed run judges each decision again as it was judged. The loop asks for the facts of a decision
point, the recorder once more just before a group is durable.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from htfi.domain.decision import Decision
from htfi.domain.errors import HtfiError, IntegrityError, LedgerUnavailable
from htfi.domain.governance import (
    MAX_CAUSE_CHARS,
    CheckpointRelease,
    GovernanceFacts,
    Hold,
    HoldKind,
    ScopeLevel,
    SwapFacts,
    parse_scope,
)
from htfi.governance.breakers.config import BreakerConfig
from htfi.governance.breakers.observations import BreakerObservation
from htfi.governance.breakers.panel import BreakerPanel
from htfi.governance.bundles.tables import DesksConfig
from htfi.governance.checkpoints.config import CheckpointConfig
from htfi.governance.checkpoints.requests import ApprovalAnswer
from htfi.governance.checkpoints.state import CheckpointState
from htfi.governance.config import PolicyConfig
from htfi.governance.control.entries import (
    BreakerMoved,
    BundleAdopted,
    CheckpointMoved,
    GovernanceEntry,
    Reenabled,
    ReenablingRefused,
    StopCause,
    Stopped,
    decode_governance,
    encode_governance,
)
from htfi.governance.control.reenabling import why_not_reenabled
from htfi.governance.control.requests import (
    BundleOffer,
    ControlRequest,
    ReenableRequest,
    StopRequest,
    stop_by_trip,
)
from htfi.governance.control.state import (
    ControlState,
    HoldSubject,
    apply,
    desks_of,
    holds_on,
    is_reader_held,
    is_reader_left_out,
    view_holds_on,
)
from htfi.governance.fairness.config import FairnessConfig
from htfi.pipeline.checkpoints import (
    OpenRights,
    WaitingDecision,
    WaitingDecisions,
    fold_entry,
    release_facts,
    waits_for_people,
)
from htfi.pipeline.governance_facts import Facts, PointFacts
from htfi.pipeline.governance_ports import ControlRequests, GovernanceLog, NoGovernanceLog, RequestQueue


class RunGovernance:
    """The state of governance in a run; `policy` are the limits in force."""

    def __init__(
        self,
        policy: PolicyConfig,
        log: GovernanceLog | None = None,
        requests: ControlRequests | None = None,
        open_rights: OpenRights | None = None,
        clock: Callable[[], int] = lambda: 0,
    ) -> None:
        """`open_rights` gives by what an answer of people is judged, none counts without; `clock` is UTC.

        Raises: IntegrityError where the log holds what is no entry.
        """
        self.policy = policy
        self._settings_policy = policy
        self.state_now = ControlState()
        self._log: GovernanceLog = log or NoGovernanceLog()
        self._requests: ControlRequests = requests or RequestQueue()
        self._entries = [(decode_governance(entry), leaf) for entry, leaf in self._log.recorded()]
        self._num_applied = 0
        self._open_rights, self._clock = open_rights, clock
        self.waiting = WaitingDecisions(
            (entry for entry, _ in self._entries if isinstance(entry, CheckpointMoved)),
            self._log_steps,
            clock,
        )
        self._checkpoints: CheckpointConfig | None = None
        self._questions: dict[str, CheckpointState] = {}  # as they are for the decision in hand
        self._panel: BreakerPanel | None = None
        self._watched: tuple[BreakerConfig, DesksConfig] | None = None
        self._moves = {entry for entry, _ in self._entries if isinstance(entry, BreakerMoved)}
        self._taken = {
            entry.request
            for entry, _ in self._entries
            if isinstance(entry, Stopped | Reenabled | ReenablingRefused)
        }

    @property
    def is_governed(self) -> bool:
        """Whether decisions state what governance knew: an entry is in force."""
        return self._num_applied > 0

    @property
    def fairness(self) -> FairnessConfig | None:
        """The limits of the swap test that the bundle in force has views put to; None where it asks for none."""
        tables = self.state_now.tables
        return tables.fairness if tables is not None and tables.fairness.test_views else None

    def fairness_at(self, index: int) -> FairnessConfig | None:
        """The same for the decision at `index`."""
        self._advance(index)
        return self.fairness

    @property
    def checkpoints(self) -> CheckpointConfig | None:
        """The checkpoints of the bundle in force; None where no decision waits for people."""
        return self._checkpoints

    @property
    def num_logged(self) -> int:
        """How many changes are logged, in force or not."""
        return len(self._entries)

    @property
    def logged(self) -> list[GovernanceEntry]:
        """The changes that are logged, oldest first."""
        return [entry for entry, _ in self._entries]

    def take_requests(self, before: int, now_ns: int) -> bool:
        """Log what was asked for from decision `before` on; whether anything was. Raises: LedgerUnavailable."""
        if not (self._requests.has_new or self.waiting.is_waiting):
            return False
        num_before = len(self._entries)
        for request in self._requests.take() if self._requests.has_new else ():
            if request.id not in self._taken:
                self._taken.add(request.id)
                self._log_request(request, before, now_ns)
        if self.waiting.is_waiting:
            self.waiting.pass_time(before)
        return len(self._entries) > num_before

    def ask_people(self, recorded: Iterable[tuple[int, Decision]], before: int) -> None:
        """Ask about those of recorded decisions, each with its index, that wait for people, once.

        Raises: LedgerUnavailable.
        """
        config = self._checkpoints
        if config is None:
            return
        self.waiting.ask(
            [
                WaitingDecision(index, decision, desks_of(self.state_now, decision.symbol))
                for index, decision in recorded
                if waits_for_people(decision, self.policy)
            ],
            config,
            before,
        )

    def facts(
        self,
        first: int,
        num: int,
        subject_at: Callable[[int], HoldSubject],
        clear_rows: Callable[[CheckpointConfig], Sequence[bool]],
        set_aside: Collection[int] = (),
    ) -> PointFacts:
        """What governance knows of `num` decisions that will stand in the ledger from index `first` on.

        `subject_at` is asked by place, where something may be held back; `clear_rows` tells which surely wait for no
        person, `set_aside` are the places of those whose view was set aside.
        """
        self._advance(first)
        if not self._has_entry_within(first + num):
            if not self.is_governed:
                return PointFacts(UNSET)
            if self.state_now.is_clear and self.fairness is None:
                clear = self._facts_of((), UNSET)
                if (config := self.checkpoints) is None and not set_aside:
                    return PointFacts(clear)
                checked = set(set_aside)
                if config is not None:
                    checked.update(place for place, is_clear in enumerate(clear_rows(config)) if not is_clear)
                return PointFacts(
                    clear, {place: self.fact(first + place, subject_at(place)) for place in sorted(checked)}
                )
        facts = {place: self.fact(first + place, subject_at(place)) for place in range(num)}
        return PointFacts(UNSET, facts)

    def fact(self, index: int, subject: HoldSubject) -> Facts:
        """The same of one decision."""
        self._advance(index)
        if not self.is_governed:
            return UNSET
        holds = holds_on(self.state_now, subject)
        view_holds = (
            () if subject.is_view_weighed else view_holds_on(self.state_now, subject) or subject.set_aside
        )
        if subject.is_amendment:  # what it amends stands, with the view of a reader that was trusted
            holds = tuple(dict.fromkeys((*holds, *view_holds)))
        if not subject.releases:
            return self._facts_of(holds, subject.swaps, view_holds)
        release = release_facts(self._questions.get(subject.releases))
        if release is None:
            denied = Hold(HoldKind.CHECKPOINT, f"series:{subject.series}", "no person has approved it")
            return self._facts_of((*holds, denied), subject.swaps, view_holds)
        return self._facts_of(holds, subject.swaps, view_holds, release)

    def release_of(self, name: str, index: int) -> CheckpointRelease | None:
        """What the decision at `index` states that releases the one of an id; None where it has no right to."""
        self._advance(index)
        return release_facts(self._questions.get(name))

    def view_holds(self, index: int, subject: HoldSubject) -> tuple[Hold, ...]:
        """Why the view of the decision at `index` must not be weighed: what reaches its readers."""
        self._advance(index)
        return view_holds_on(self.state_now, subject)

    def leaves_out(self, index: int, names: Collection[str], *, is_watched: bool) -> bool:
        """Whether the reader of these names is not asked for the decision at `index` (`is_reader_left_out`)."""
        self._advance(index)
        return is_reader_left_out(self.state_now, names, is_watched=is_watched)

    def holds_reader(self, index: int, names: Collection[str]) -> bool:
        """Whether a view by the reader of these names does not count in the decision at `index` (`is_reader_held`)."""
        self._advance(index)
        return is_reader_held(self.state_now, names)

    def has_breakers(self, before: int) -> bool:
        """Whether a bundle in force for decision `before` has circuit breakers observe."""
        self._advance(before)
        return self._panel is not None

    def observe(self, observation: BreakerObservation, before: int) -> list[BreakerMoved]:
        """Let the circuit breakers observe what precedes decision `before`; the changes, which are to be logged."""
        self._advance(before)
        changes = [] if self._panel is None else self._panel.observe(observation)
        return [
            BreakerMoved(
                one.at_ns,
                before,
                one.breaker,
                one.scope,
                one.state,
                one.statistic,
                one.threshold,
                one.evidence,
            )
            for one in changes
        ]

    def log_changes(self, changes: Sequence[BreakerMoved], *, is_replaying: bool) -> None:
        """Log what breakers did, unless the log of a run made again holds it. Nothing waits in an open group.

        Raises: IntegrityError where a run made again comes to other changes, LedgerUnavailable.
        """
        for entry in changes:
            if entry in self._moves:
                continue
            if is_replaying:
                raise IntegrityError(
                    f"breaker {entry.breaker} of {entry.scope} changes at decision {entry.before}, which the "
                    "governance log does not hold: the inputs, the settings or the code changed since; use a new folder"
                )
            if (stop := stop_by_trip(entry)) is not None:
                self._requests.share(stop)  # before it is logged: a crash between the two loses no stop
            self.log(entry)

    def log(self, entry: GovernanceEntry) -> None:
        """Make a change durable; it is in force for decisions from `entry.before` on. Raises: LedgerUnavailable."""
        receipt = self._log.append(encode_governance(entry))
        self._entries.append((entry, receipt.leaf_hash))

    def _log_steps(self, entries: Sequence[CheckpointMoved]) -> None:
        """Make steps of questions durable, together. Raises: LedgerUnavailable."""
        receipts = self._log.append_all([encode_governance(entry) for entry in entries])
        self._entries += [
            (entry, receipt.leaf_hash) for entry, receipt in zip(entries, receipts, strict=True)
        ]

    def _log_request(self, request: ControlRequest, before: int, now_ns: int) -> None:
        at_ns = request.at_ns or now_ns
        if isinstance(request, BundleOffer):
            self._log_bundle(request, before)
            return
        if isinstance(request, ApprovalAnswer):
            if self._open_rights is not None:
                self.waiting.take(request, self._open_rights, before)
            return
        if not isinstance(request, StopRequest):
            self._log_reenabling(request, at_ns, before)
            return
        if request.cause in (StopCause.SIGNAL, StopCause.DEAD_MAN):
            self._requests.share(request)
        entry = Stopped(at_ns, before, request.scope, request.by, request.why, request.cause, request.id)
        try:
            self.log(entry)
        except LedgerUnavailable as error:
            self._requests.mark_stopped(request)
            raise LedgerUnavailable(
                f"stopped: {request.scope}, by {request.by}: {request.why}; nothing more is released, though the "
                f"stop could not be logged ({error}): solve this and run the same command again"
            ) from error

    def _log_reenabling(self, request: ReenableRequest, at_ns: int, before: int) -> None:
        """Log that a scope is re-enabled, or that the request did not count. Raises: LedgerUnavailable."""
        level, name = parse_scope(request.scope)
        desks = desks_of(self.state_now, name.partition("/")[0]) if level is ScopeLevel.SERIES else ()
        refusal = ""
        if self._open_rights is not None:
            try:
                refusal = why_not_reenabled(request, self._open_rights(), desks, self._clock())
            except HtfiError as error:  # what cannot be judged does not count
                refusal = str(error)
        if refusal:
            about = (request.scope, request.by, request.why, request.id)
            self.log(ReenablingRefused(at_ns, before, *about, refusal[:MAX_CAUSE_CHARS]))
            return
        self.log(
            Reenabled(
                at_ns, before, request.scope, request.by, request.why, request.id, request.breaker,
                request.signed or UNSET,
            )
        )  # fmt: skip

    def _log_bundle(self, offer: BundleOffer, before: int) -> None:
        """Log the bundle to go by, unless it is the one that the log names last."""
        known = next((one for one, _ in reversed(self._entries) if isinstance(one, BundleAdopted)), None)
        is_known = (offer.text, offer.stale) == ((known.text, known.stale) if known is not None else ("", ""))
        if not is_known:
            self.log(BundleAdopted(offer.at_ns, before, offer.digest, offer.number, offer.text, offer.stale))

    def _facts_of(
        self,
        holds: tuple[Hold, ...],
        swaps: SwapFacts | UnsetType,
        view_holds: tuple[Hold, ...] = (),
        release: CheckpointRelease | UnsetType = UNSET,
    ) -> GovernanceFacts:
        newest = self._entries[self._num_applied - 1][1]
        digest = self.state_now.bundle_digest
        return GovernanceFacts(self._num_applied, newest, digest, holds, swaps, release, view_holds or UNSET)

    def _has_entry_within(self, index: int) -> bool:
        """Whether an entry that is not in force yet applies to a decision before `index`."""
        return self._num_applied < len(self._entries) and self._entries[self._num_applied][0].before < index

    def _advance(self, index: int) -> None:
        """Put in force what applies to the decision at `index`."""
        while self._has_entry_within(index + 1):
            self._put_in_force(self._entries[self._num_applied][0])
            self._num_applied += 1

    def _put_in_force(self, entry: GovernanceEntry) -> None:
        self.state_now = apply(self.state_now, entry)
        if isinstance(entry, CheckpointMoved):
            fold_entry(self._questions, entry)
        if isinstance(entry, Reenabled) and self._panel is not None:
            self._panel.reenable(entry.scope, entry.by, entry.why, entry.at_ns, entry.breaker)
        if isinstance(entry, BundleAdopted):
            before, tables = self._watched, self.state_now.tables
            self._watched = None if tables is None else (tables.breakers, tables.desks)
            if self._watched != before:
                panel = None if tables is None else BreakerPanel(tables.breakers, tables.desks.by_symbol())
                if panel is not None and self._panel is not None:
                    panel.keep_open(self._panel)
                self._panel = panel
            self.policy = self._settings_policy if tables is None else tables.policy
            self._checkpoints = self.state_now.checkpoints

    def state(self) -> dict[str, Any]:
        breakers = self._panel.state() if self._panel is not None else None
        return {"num_applied": self._num_applied, "breakers": breakers, "waiting": self.waiting.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Raises: IntegrityError where the log has lost entries since."""
        num: int = state["num_applied"]
        if num > len(self._entries):
            raise IntegrityError(
                f"the governance log holds {len(self._entries)} entries, but {num} were in force when the state was "
                "saved: it was replaced or cut; restore it, or use a new folder"
            )
        self.state_now, self._num_applied = ControlState(), num
        self._panel = self._watched = self._checkpoints = None
        self._questions.clear()
        for entry, _ in self._entries[:num]:
            self._put_in_force(entry)
        if self._panel is not None and state.get("breakers") is not None:
            self._panel.restore(state["breakers"])
        if "waiting" in state:  # not in one that an earlier version saved
            self.waiting.restore(state["waiting"])
