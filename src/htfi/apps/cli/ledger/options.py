"""Arguments that the commands of `htfi ledger` share, and what they demand of keys, witnesses and files."""

from collections.abc import Sequence
from pathlib import Path

import click

from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.governance.ledger.checkpoint import require_witnesses
from htfi.governance.ledger.note import SignedNote, VerifierKey, parse_verifier_key
from htfi.wiring.ledger import signature_verifier

FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
FILE = click.Path(path_type=Path, dir_okay=False)
KEY = click.option("--key", "key_text", metavar="VKEY", help="Require that this verifier key signed the log.")
WITNESS = click.option(
    "--witness",
    "witnesses",
    metavar="VKEY",
    multiple=True,
    help="A witness whose cosignature counts; repeatable.",
)
NUM_WITNESSES = click.option(
    "--need",
    metavar="K",
    type=click.IntRange(0),
    help="How many witnesses must have cosigned (default: all).",
)
TARGET = click.option(
    "--target",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the reading model, if not a shipped one.",
)
DRAFT = click.option(
    "--draft",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the draft model that finished an answer, if not the shipped one.",
)


def require_key(key: VerifierKey, expected: str | None) -> None:
    if expected is not None and parse_verifier_key(expected) != key:
        raise IntegrityError(f"the ledger is signed by {key}, not by the required key")


def require_cosignatures(note: SignedNote, witnesses: Sequence[str], need: int | None) -> list[str]:
    keys = [parse_verifier_key(witness) for witness in witnesses]
    wanted = len(keys) if need is None else need
    return [key.name for key in require_witnesses(note, keys, wanted, signature_verifier())]


def read_file(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot read {file}: {error.strerror}") from error


def write_file(file: Path, content: bytes) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    except OSError as error:
        raise DependencyUnavailable(f"cannot write {file}: {error.strerror}") from error
