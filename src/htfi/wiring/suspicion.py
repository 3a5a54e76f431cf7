"""The secure mode of a run's folder, for people: what is suspected by the record, and the word that ends it."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from msgspec import UNSET

from htfi.adapters.stores.admissions import read_admissions, request_suspicion_reset
from htfi.domain.errors import InvalidInput
from htfi.governance.authorisation import AccessAction, AccessResource, ResourceKind
from htfi.narrative.text import clean
from htfi.pipeline.operator_actions import MAX_REASON_CHARS, ResetOrder
from htfi.pipeline.record.entry import try_decode_entry
from htfi.pipeline.record.unread import UnreadEntries
from htfi.wiring.authorisation import Requester, authorise
from htfi.wiring.ledger import is_running, open_ledger_readonly
from htfi.wiring.quarantine import require_run_folder
from htfi.wiring.request_token import RequestToken

MAX_SYMBOL_CHARS = 64

ProgressCallback = Callable[[int, int], None]


class SuspectedSymbol(NamedTuple):
    """A symbol that the secure mode stood for at its newest decision, and how many decisions were made in it."""

    symbol: str
    as_of_ns: int
    why: str
    num_decisions: int


class ResetRequest(NamedTuple):
    """An operator's request to end a suspicion, and when it took effect in the run's own time; None: not yet."""

    reset: ResetOrder
    at_ns: int | None


class SuspicionStatus(NamedTuple):
    """Current and past suspicions, by the ledger, and operators' requests."""

    current: list[SuspectedSymbol]
    past: list[SuspectedSymbol]
    requests: list[ResetRequest]
    unread: UnreadEntries  # of the ledger


def read_status(folder: Path, report: ProgressCallback) -> SuspicionStatus:
    """What a run's ledger says of suspicion. Raises: InvalidInput, IntegrityError, DependencyUnavailable."""
    require_run_folder(folder)
    newest: dict[str, SuspectedSymbol] = {}
    is_current: dict[str, bool] = {}
    unread = UnreadEntries()
    log = open_ledger_readonly(folder)
    try:
        size = log.size
        for done, entry in enumerate(log.entries(0, size), 1):
            decision = try_decode_entry(entry)
            if decision is None:
                unread.add(done - 1, entry)
            elif not decision.amends:
                why = decision.news_context.suspicion if decision.news_context is not None else ""
                is_current[decision.symbol] = bool(why)
                if why:
                    num = newest[decision.symbol].num_decisions if decision.symbol in newest else 0
                    newest[decision.symbol] = SuspectedSymbol(
                        decision.symbol, decision.as_of_ns, why, num + 1
                    )
            report(done, size)
    finally:
        log.close()
    requested, admitted = read_admissions(folder)
    times_ns = {one.release.number: one.at_ns for one in admitted if isinstance(one.release, ResetOrder)}
    requests_by_number = {
        one.number: one
        for one in (*requested, *(each.release for each in admitted))
        if isinstance(one, ResetOrder)
    }
    return SuspicionStatus(
        current=[one for symbol, one in newest.items() if is_current[symbol]],
        past=[one for symbol, one in newest.items() if not is_current[symbol]],
        requests=[
            ResetRequest(requests_by_number[number], times_ns.get(number))
            for number in sorted(requests_by_number, reverse=True)
        ],
        unread=unread,
    )


def request_reset(
    folder: Path, requester: Requester, why: str, symbol: str = "", token: RequestToken | None = None
) -> tuple[ResetOrder, bool]:
    """Record a named person's request to end a suspicion, of a symbol or of everything; with it whether a run is
    going on, which takes it in within seconds.

    Raises: InvalidInput where name or reason are missing, AccessDenied, DependencyUnavailable.
    """
    require_run_folder(folder)
    name = clean(symbol, MAX_SYMBOL_CHARS)
    if name != symbol:
        raise InvalidInput(f"--symbol: '{name}' is not the symbol of a series")
    reason = _required_text(why, "--why: a reason")
    resource = AccessResource(ResourceKind.SUSPICION, name or "everything")
    allowed = authorise(requester, folder, AccessAction.END_SUSPICION, resource, reason)
    clearing = request_suspicion_reset(
        folder,
        _required_text(allowed.by, "--by: a name"),
        reason,
        name,
        allowed.note or UNSET,
        token.named("reset") if token is not None else UNSET,
    )
    return clearing, is_running(folder)


def _required_text(text: str, what: str) -> str:
    reason = clean(text, MAX_REASON_CHARS)
    if not any(char.isalnum() for char in reason):
        raise InvalidInput(f"{what} is required: the record states who ended the suspicion and why")
    return reason
