"""Opens the governance log of a governance folder: what officers, bundles, verdicts and promotions are recorded in."""

from pathlib import Path

from htfi.governance.ledger.log import LogReader, TransparencyLog
from htfi.wiring.ledger import open_ledger, open_ledger_readonly

GOVERNANCE_DATABASE = "governance.db"
GOVERNANCE_ORIGIN = "htfi.governance"
TURN_S = 10.0  # for which a command waits for another that writes


def open_governance_log(folder: Path, wait_s: float = TURN_S) -> TransparencyLog:
    """The folder's governance log, for appending; made at first.

    Commands and nodes write it in turns: each holds it for as long as it appends, and waits `wait_s` at most for it.
    Raises: InvalidInput, IntegrityError, LedgerUnavailable.
    """
    return open_ledger(folder, origin=GOVERNANCE_ORIGIN, database=GOVERNANCE_DATABASE, wait_s=wait_s)


def read_governance_log(folder: Path) -> LogReader | None:
    """The same to read; None where the folder has none yet. Raises: IntegrityError, LedgerUnavailable."""
    if not (folder / GOVERNANCE_DATABASE).exists():
        return None
    return open_ledger_readonly(folder, GOVERNANCE_DATABASE)
