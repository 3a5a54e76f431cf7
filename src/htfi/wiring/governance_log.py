"""Opens the governance log of a governance folder: what officers, bundles, verdicts and promotions are recorded in."""

from pathlib import Path

from htfi.governance.ledger.log import LogReader, TransparencyLog
from htfi.wiring.ledger import open_ledger, open_ledger_readonly

GOVERNANCE_DATABASE = "governance.db"
GOVERNANCE_ORIGIN = "htfi.governance"


def open_governance_log(folder: Path) -> TransparencyLog:
    """The folder's governance log, for appending; made at first.

    Raises: InvalidInput, IntegrityError, LedgerUnavailable.
    """
    return open_ledger(folder, origin=GOVERNANCE_ORIGIN, database=GOVERNANCE_DATABASE)


def read_governance_log(folder: Path) -> LogReader | None:
    """The same to read; None where the folder has none yet. Raises: IntegrityError, LedgerUnavailable."""
    if not (folder / GOVERNANCE_DATABASE).exists():
        return None
    return open_ledger_readonly(folder, GOVERNANCE_DATABASE)
