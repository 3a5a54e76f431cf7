"""Arguments that the commands of `htfi ledger` share, and what they demand of keys, witnesses and files."""

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

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


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--governance, --reader and --why: the rules must allow the reading, and it is logged, before the command runs."""

    @wraps(command)
    def with_reader(
        *args: Any,
        folder: Path,
        governance: Path | None,
        reader: Path | None,
        why: str | None,
        **options: Any,
    ) -> Any:
        if governance is None:
            if reader is not None or why is not None:
                raise click.UsageError("--reader and --why go with --governance.")
            return command(*args, folder=folder, **options)
        if reader is None or not (why or "").strip():
            raise click.UsageError(
                "--governance needs --reader and --why: who reads the record, and what for."
            )
        from htfi.wiring.reading import Reader, record_reading

        context = click.get_current_context()
        asked = (options.get(name) for name in ("which", "index", "out"))
        words = [str(context.info_name), *(str(one) for one in asked if one is not None)]
        record_reading(folder, Reader(governance, reader, (why or "").strip()), " ".join(words))
        return command(*args, folder=folder, **options)

    for option in (_READING_WHY, _READER, _READING_GOVERNANCE):
        option(with_reader)
    return with_reader


_READING_GOVERNANCE = click.option(
    "--governance",
    metavar="G",
    type=click.Path(path_type=Path, file_okay=False),
    help="Governance folder: its rules decide whether --reader may read the record, and its log says who did.",
)
_READER = click.option(
    "--reader", metavar="FILE", type=FILE, help="Your signing key, where --governance is given."
)
_READING_WHY = click.option(
    "--why", metavar="TEXT", help="What you read it for, where --governance is given."
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
