"""Where a run's governance stands, from its log: limits in force, breakers, stops, and what waits to be taken."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from htfi.adapters.stores.control_folder import CONTROL_FOLDER, STOP_FILE, read_requests
from htfi.adapters.stores.snapshot import read_whole
from htfi.client.governance_bodies import (
    BreakerBody,
    BreakersBody,
    ControlBody,
    PolicyBody,
    ProposedBundle,
    StopBody,
    WaitingRequest,
)
from htfi.domain.governance import BreakerState
from htfi.domain.time import format_ns
from htfi.governance.bundles.in_force import BundleActivated, BundleProposed
from htfi.governance.checkpoints.requests import ApprovalAnswer
from htfi.governance.control.entries import (
    BreakerMoved,
    GovernanceEntry,
    Reenabled,
    ReenablingRefused,
    Stopped,
    decode_governance,
)
from htfi.governance.control.state import ControlState, apply, bundle_words
from htfi.wiring.authorisation import has_people, run_key
from htfi.wiring.bundles import read_entries
from htfi.wiring.control import governance_leaves
from htfi.wiring.ledger import DATABASE, is_running
from htfi.wiring.order_record import has_orders
from htfi.wiring.quarantine import require_run_folder
from htfi.wiring.settings import SETTINGS_FILE, decode_settings

BY_BUNDLE, BY_SETTINGS = "bundle", "settings"


def read_policy(run: Path, governance: Path | None) -> PolicyBody:
    """Raises: InvalidInput, IntegrityError, DependencyUnavailable."""
    state = _state(_entries(run))
    recorded = read_entries(governance) if governance is not None else []
    bundle = state.bundle
    tables = state.tables
    activated = next(
        (
            one
            for one in reversed(recorded)
            if isinstance(one, BundleActivated) and one.digest == state.bundle_digest
        ),
        None,
    )
    if tables is not None:
        limits: dict[str, Any] = msgspec.to_builtins(tables)
    else:
        settings = decode_settings(read_whole(run / SETTINGS_FILE) or b"{}", to_verify=True)
        limits = {"policy": msgspec.to_builtins(settings.policy)}
        if has_orders(run):
            limits["order_limits"] = msgspec.to_builtins(settings.order_limits)
    return PolicyBody(
        by=BY_SETTINGS if tables is None else BY_BUNDLE,
        words=bundle_words(state),
        number=bundle.number if bundle is not None and tables is not None else None,
        digest=state.bundle_digest,
        stale="" if bundle is None else bundle.stale,
        limits=limits,
        signers=None if activated is None else list(activated.signers),
        note=None if activated is None else activated.note,
        proposed=[
            ProposedBundle(one.number, one.digest, one.author, list(one.signers), format_ns(one.at_ns))
            for one in recorded
            if isinstance(one, BundleProposed) and not _is_activated(one, recorded)
        ],
    )


def read_breakers(run: Path) -> BreakersBody:
    """Raises: InvalidInput, IntegrityError, LedgerUnavailable."""
    entries = _entries(run)
    tables = _state(entries).tables
    settings = None if tables is None else msgspec.to_builtins(tables.breakers)
    return BreakersBody(list(_newest_moves(entries).values()), settings)


def read_control(run: Path, governance: Path | None) -> ControlBody:
    """Raises: InvalidInput, IntegrityError, LedgerUnavailable."""
    require_run_folder(run)
    entries = _entries(run)
    state = _state(entries)
    stops = {one.scope: one for one in entries if isinstance(one, Stopped)}
    moves = _newest_moves(entries)
    taken = {one.request for one in entries if isinstance(one, Stopped | Reenabled | ReenablingRefused)}
    asked, _ = read_requests(run / CONTROL_FOLDER)
    return ControlBody(
        is_running=(run / DATABASE).exists() and is_running(run),
        is_clear=state.is_clear,
        stops=[
            StopBody(one.scope, one.by, one.why, one.cause.value, format_ns(one.at_ns), one.before)
            for one in (stops[scope] for scope in state.stops)
        ],
        open_breakers=[moves[key] for key in state.breakers if key in moves],
        waiting=[
            WaitingRequest(one.id, str(one.__struct_config__.tag), one.by, one.why)
            for one in asked
            if not isinstance(one, ApprovalAnswer) and one.id not in taken
        ],
        has_stop_file=(run / CONTROL_FOLDER / STOP_FILE).exists(),
        run_key=run_key(run) if (run / DATABASE).exists() else "",
        has_people=governance is not None and has_people(governance),
    )


def _entries(run: Path) -> list[GovernanceEntry]:
    return [decode_governance(entry) for entry, _ in governance_leaves(run)]


def _state(entries: Iterable[GovernanceEntry]) -> ControlState:
    """After all that is logged, also what applies to the next decision only."""
    state = ControlState()
    for entry in entries:
        state = apply(state, entry)
    return state


def _newest_moves(entries: Iterable[GovernanceEntry]) -> dict[tuple[str, str], BreakerBody]:
    """The newest change of each breaker and scope; what people have closed is closed."""
    found: dict[tuple[str, str], BreakerBody] = {}
    for one in entries:
        if isinstance(one, BreakerMoved):
            found[one.breaker, one.scope] = BreakerBody(
                one.breaker, one.scope, one.state.value, one.statistic, one.threshold, one.evidence,
                format_ns(one.at_ns), one.before,
            )  # fmt: skip
        elif isinstance(one, Reenabled):
            closed = f"closed by {one.by}: {one.why}"
            for (name, scope), known in found.items():
                if scope == one.scope and one.breaker in ("", name) and known.state != BreakerState.CLOSED:
                    found[name, scope] = msgspec.structs.replace(
                        known,
                        state=BreakerState.CLOSED.value,
                        evidence=closed,
                        at=format_ns(one.at_ns),
                        before=one.before,
                    )
    return found


def _is_activated(one: BundleProposed, recorded: Sequence[object]) -> bool:
    return any(isinstance(other, BundleActivated) and other.digest == one.digest for other in recorded)
