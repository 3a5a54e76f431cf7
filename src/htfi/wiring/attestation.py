"""Records in a run's governance log what a person attests of duties outside the system."""

from hashlib import sha256
from pathlib import Path

from htfi.adapters.stores.owner_lock import OwnerLock
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.governance.control.entries import Attested, encode_governance
from htfi.wiring.control import GovernanceLogFile
from htfi.wiring.ledger import DATABASE, open_ledger_readonly
from htfi.wiring.retention import required_words


def attest(run: Path, subject: str, by: str, why: str, document: Path | None, at_ns: int) -> Attested:
    """Append the attestation; `document` is known by its digest alone.

    Raises: InvalidInput, IntegrityError, LedgerUnavailable, also where the run has not ended; DependencyUnavailable.
    """
    person, reason = required_words(by, "--by: a name"), required_words(why, "--why: what was done")
    if not (run / DATABASE).is_file():
        raise InvalidInput(f"{run} is not the folder of a run: it has no {DATABASE}")
    try:
        digest = "" if document is None else sha256(document.read_bytes()).hexdigest()
    except OSError as error:
        raise DependencyUnavailable(f"{document}: cannot be read: {error.strerror}") from error
    lock = OwnerLock(run / DATABASE)
    try:
        log = open_ledger_readonly(run)
        size = log.size
        log.close()
        attested = Attested(at_ns, size, subject, person, reason, digest)
        governance = GovernanceLogFile(run)
        try:
            governance.append(encode_governance(attested))
        finally:
            governance.close()
    finally:
        lock.release()
    return attested
