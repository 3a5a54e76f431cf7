"""Opens the ledger of a run's folder: database, signing key and lock. Apps and the loop's wiring call it."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from htfi.adapters.keys.ed25519 import create_key, load_key, verify_signature
from htfi.adapters.stores.owner_lock import OwnerLock, is_owned
from htfi.adapters.stores.sqlite_log import (
    create_store,
    open_store,
    open_store_for_cosigning,
    open_store_readonly,
)
from htfi.domain.errors import InvalidInput, LedgerUnavailable
from htfi.domain.files import check_plain, make_private
from htfi.governance.ledger.checkpoint import Checkpoint, log_key, sign_checkpoint
from htfi.governance.ledger.log import LogReader, TransparencyLog
from htfi.governance.ledger.merkle import EMPTY_ROOT
from htfi.governance.ledger.note import VerifierKey, check_key_name
from htfi.governance.ports import VerifySignature

if TYPE_CHECKING:
    from htfi.governance.ledger.checkpoint import LogWitness

DATABASE = "ledger.db"
SIGNING_KEY = "signing.key"


def open_ledger(
    folder: Path, *, origin: str, durable: bool = True, database: str = DATABASE, wait_s: float = 0.0
) -> TransparencyLog:
    """The folder's ledger, or the log in another `database`, for appending; made at first, with its own signing key.

    `origin` names the log in its checkpoints, in a form such as example.com/desk. Without `durable` an append
    does not wait for the disk: for measurements only. Where another process appends to it, it waits `wait_s` at most.
    Raises: InvalidInput, IntegrityError, LedgerUnavailable (also where the other process goes on).
    """
    check_key_name(origin)
    try:
        make_private(folder)
    except OSError as error:
        raise LedgerUnavailable(f"cannot write to {folder}: {error.strerror}") from error
    path, key_path = folder / database, folder / SIGNING_KEY
    try:
        for one in (path, key_path):
            check_plain(one)
    except OSError as error:
        raise LedgerUnavailable(f"{error.filename} {error.strerror}") from error
    lock = OwnerLock(path, wait_s)
    try:
        if not path.exists():
            signer = load_key(key_path) if key_path.exists() else create_key(key_path, origin)
            genesis = sign_checkpoint(Checkpoint(origin, 0, EMPTY_ROOT), signer)
            create_store(path, verifier_key=str(log_key(origin, signer)), checkpoint=str(genesis))
        elif not key_path.exists():
            raise InvalidInput(
                f"{key_path} is missing, so {path} cannot grow: restore the key it was begun with"
            )
        signer = load_key(key_path)
        store = open_store(path, lock, durable=durable)
    except BaseException:
        lock.release()
        raise
    try:
        log = TransparencyLog(store, signer, verify_signature)
        if log.origin != origin:
            raise InvalidInput(f"{path} is the log '{log.origin}', not '{origin}': choose another folder")
    except BaseException:
        store.close()
        raise
    return log


def open_ledger_readonly(folder: Path, database: str = DATABASE) -> LogReader:
    """The folder's ledger, or another log, to read, prove and verify, also while a run appends to it.

    Raises: InvalidInput, IntegrityError, LedgerUnavailable.
    """
    return LogReader(open_store_readonly(folder / database), verify_signature)


def open_ledger_for_cosigning(folder: Path) -> LogReader:
    """The folder's ledger, to read and to add a witness's cosignature, also while a run appends to it.

    Raises: InvalidInput, IntegrityError, LedgerUnavailable.
    """
    return LogReader(open_store_for_cosigning(folder / DATABASE), verify_signature)


def is_running(folder: Path) -> bool:
    """Whether a process holds the run's ledger."""
    return is_owned(folder / DATABASE)


@contextmanager
def open_witness(key_path: Path, memory_path: Path) -> Generator["LogWitness"]:
    """The witness of a key file, with its memory held until the end of the block.

    Raises: InvalidInput, IntegrityError, LedgerUnavailable.
    """
    from htfi.adapters.keys.ed25519 import WitnessMemoryFile
    from htfi.governance.ledger.checkpoint import LogWitness

    signer = load_key(key_path)
    memory = WitnessMemoryFile(memory_path)
    try:
        yield LogWitness(signer.name, signer, memory, verify_signature)
    finally:
        memory.close()


def create_signing_key(path: Path, name: str) -> VerifierKey:
    """Make a signing key in a new file; its public half. Raises: InvalidInput, DependencyUnavailable."""
    return create_key(path, name).verifier_key


def signature_verifier() -> VerifySignature:
    """How signatures are verified, for proofs checked without a ledger."""
    return verify_signature
