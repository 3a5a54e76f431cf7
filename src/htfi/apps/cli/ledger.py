"""`htfi ledger`: verify, prove, show, export and cosign the record of a run. Each command opens it read only,
so that it may be used while the run goes on.
"""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from htfi.apps.cli import ledger_view as view
from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.governance.ledger.checkpoint import require_witnesses
from htfi.governance.ledger.log import LogView
from htfi.governance.ledger.note import Note, VerifierKey, parse_verifier_key
from htfi.governance.ledger.proof import (
    InclusionProof,
    check_proof,
    encode_proof,
    parse_proof,
    prove_consistency,
    prove_inclusion,
    write_tlog_proof,
)
from htfi.governance.ledger.static import json_line, static_files
from htfi.wiring.ledger import (
    make_key,
    open_ledger_for_cosigning,
    open_ledger_readonly,
    open_witness,
    signature_check,
)

FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
FILE = click.Path(path_type=Path, dir_okay=False)
KEY = click.option("--key", "key_text", metavar="VKEY", help="Demand that this verifier key signed the log.")
WITNESS = click.option(
    "--witness",
    "witnesses",
    metavar="VKEY",
    multiple=True,
    help="A witness whose cosignature counts; repeatable.",
)
NEED = click.option(
    "--need", metavar="K", type=click.IntRange(0), help="How many of them must have cosigned (default: all)."
)


@click.group("ledger", short_help="Verify, prove, show, export and cosign the record.")
def command() -> None:
    """Verify, prove, show, export and cosign the record of a run.

    DIR is the folder of a run, as `htfi run --out DIR` made it.

    \b
    Examples:
      htfi ledger verify DIR             recompute every hash, check every signature
      htfi ledger show DIR 12            one decision, for people
      htfi ledger prove DIR --index 12   evidence that outlives the ledger
    """


@command.command()
@FOLDER
@KEY
@WITNESS
@NEED
def verify(folder: Path, key_text: str | None, witnesses: tuple[str, ...], need: int | None) -> None:
    """Recompute the whole ledger from its entries and check every signature.

    Exit status 1, and one line that names the first bad entry, where anything does not hold.

    \b
    Examples:
      htfi ledger verify DIR
      htfi ledger verify DIR --key htfi.example/run+bd1cfb4f+AV0R…
      htfi ledger verify DIR --witness W1 --witness W2 --witness W3 --need 2
    """
    log = open_ledger_readonly(folder)
    try:
        _demand_key(log.key, key_text)
        with view.progress(f"verifying {folder}", log.size) as advance:
            audit = log.verify(advance)
        _, note = log.checkpoint(audit.size)
    finally:
        log.close()
    found = _demand_witnesses(note, witnesses, need)
    click.echo(f"{audit.size} entries, every one as recorded")
    click.echo(f"root {audit.root.hex()}")
    click.echo(f"{audit.num_checkpoints} checkpoints signed by {log.key}")
    if audit.num_cosignatures or witnesses:
        by = f", the newest by {', '.join(found)}" if found else ""
        click.echo(f"{audit.num_cosignatures} cosignatures{by}")


@command.command()
@FOLDER
@click.option("--index", metavar="N", type=click.IntRange(0), help="Prove that entry N is in the ledger.")
@click.option(
    "--size", metavar="M", type=click.IntRange(0), help="At the checkpoint of size M (default: the newest)."
)
@click.option(
    "--consistency",
    nargs=2,
    metavar="M N",
    type=click.IntRange(0),
    help="Prove that the tree of N entries extends that of M.",
)
@click.option("--json", "json_file", metavar="FILE", type=FILE, help="Write the proof to FILE as JSON.")
def prove(
    folder: Path,
    index: int | None,
    size: int | None,
    consistency: tuple[int, int] | None,
    json_file: Path | None,
) -> None:
    """Write evidence that can be checked without the ledger.

    Without --json an inclusion proof goes to standard output in the C2SP form tlog-proof.

    \b
    Examples:
      htfi ledger prove DIR --index 12 > 12.tlog-proof
      htfi ledger prove DIR --index 12 --json proof.json
      htfi ledger prove DIR --consistency 100 250 --json growth.json
    """
    if (index is None) == (consistency is None) or (consistency is not None and size is not None):
        raise InvalidInput("say what to prove: either --index N [--size M] or --consistency M N")
    log = open_ledger_readonly(folder)
    try:
        if consistency is not None:
            proof = prove_consistency(log, *consistency)
        else:
            proof = prove_inclusion(log, index or 0, size)
    finally:
        log.close()
    if json_file is not None:
        _write(json_file, encode_proof(proof))
        click.echo(
            f"proof written to {json_file}: check it by `htfi ledger check-proof {json_file} --key {log.key}`"
        )
    elif isinstance(proof, InclusionProof):
        click.echo(write_tlog_proof(proof), nl=False)
    else:
        click.echo(encode_proof(proof), nl=False)


@command.command("check-proof")
@click.argument("file", type=FILE)
@KEY
@WITNESS
@NEED
def check_proof_file(file: Path, key_text: str | None, witnesses: tuple[str, ...], need: int | None) -> None:
    """Check a proof with nothing but the log's public key; no ledger, no network.

    Without --key the key named in the proof is used, and printed for you to compare.

    \b
    Examples:
      htfi ledger check-proof proof.json --key htfi.example/run+bd1cfb4f+AV0R…
      htfi ledger check-proof 12.tlog-proof --key htfi.example/run+bd1cfb4f+AV0R…
    """
    proof = parse_proof(_read(file))
    named = key_text or proof.log_key
    if named is None:
        raise InvalidInput(f"{file} does not name the log's key: give it with --key")
    key = parse_verifier_key(named)
    checkpoint, note = check_proof(proof, key, signature_check())
    found = _demand_witnesses(note, witnesses, need)
    if isinstance(proof, InclusionProof):
        click.echo(f"entry {proof.index} is among the {checkpoint.size} that {checkpoint.origin} signed")
        click.echo(f"entry {proof.index} begins: {view.first_words(proof.entry)}")
    else:
        click.echo(
            f"the {checkpoint.size} entries that {checkpoint.origin} signed extend the first {proof.old_size}"
        )
        click.echo(f"root of the first {proof.old_size}: {proof.old_root.hex()}")
    click.echo(f"root {checkpoint.root.hex()}")
    click.echo(
        f"signed by {key}" + ("" if key_text else "  (named by the proof itself: compare it with the log's)")
    )
    if found:
        click.echo(f"cosigned by {', '.join(found)}")


@command.command()
@FOLDER
@click.argument("which", metavar="[N|ID]", required=False)
@click.option("--json", "as_json", is_flag=True, help="The entry's exact bytes.")
def show(folder: Path, which: str | None, as_json: bool) -> None:
    """Show one decision, by its number or its id; without either, the head of the ledger.

    \b
    Examples:
      htfi ledger show DIR
      htfi ledger show DIR 12
      htfi ledger show DIR SPX/1d@2008-10-10T20:00:00Z
      htfi ledger show DIR 12 --json | python -m json.tool
    """
    log = open_ledger_readonly(folder)
    try:
        if which is None:
            if as_json:
                raise InvalidInput("name the entry whose bytes to show: htfi ledger show DIR N --json")
            view.show_head(log)
            return
        index, entry = _find(log, which)
    finally:
        log.close()
    if as_json:
        click.echo(entry)
    else:
        view.show_entry(index, entry)


@command.command()
@FOLDER
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
def export(folder: Path, out: Path) -> None:
    """Write the ledger as static files that tools for C2SP tlog-tiles read, and entries.jsonl.

    \b
    Examples:
      htfi ledger export DIR public/
      python -m http.server --directory public
    """
    log = open_ledger_readonly(folder)
    try:
        size = log.size
        with view.progress(f"exporting {folder}", size) as advance:
            for path, content in static_files(log, size, advance):
                _write(out / path, content)
        _write_lines(out / "entries.jsonl", (json_line(*item) for item in enumerate(log.entries(0, size))))
    finally:
        log.close()
    click.echo(f"{size} entries exported to {out}: checkpoint, tile/ and entries.jsonl, signed by {log.key}")


@command.command()
@FOLDER
@click.option(
    "--key", "key_file", metavar="FILE", type=FILE, required=True, help="The witness's key, from keygen."
)
@click.option(
    "--state", metavar="FILE", type=FILE, required=True, help="What this witness has seen; made at first use."
)
@click.option("--log-key", metavar="VKEY", help="Demand that the log is signed by this verifier key.")
def cosign(folder: Path, key_file: Path, state: Path, log_key: str | None) -> None:
    """Act as a witness: cosign the newest checkpoint if it extends all that this witness has seen.

    A rollback or a fork is refused. The signature line goes to standard output and into the ledger.

    \b
    Examples:
      htfi ledger keygen witness.example/w1 w1.key
      htfi ledger cosign DIR --key w1.key --state w1.state
    """
    log = open_ledger_for_cosigning(folder)
    try:
        _demand_key(log.key, log_key)
        checkpoint, note = log.checkpoint()
        with open_witness(key_file, state) as witness:
            signature = witness.add_checkpoint(
                str(note),
                log.key,
                lambda old_size: log.consistency_proof(old_size, checkpoint.size),
                time_s=int(time.time()),
            )
        log.add_cosignature(checkpoint.size, witness.key, signature)
    finally:
        log.close()
    click.echo(str(signature))
    click.echo(f"{witness.name} vouches for {checkpoint.size} entries of {checkpoint.origin}", err=True)


@command.command()
@click.argument("name")
@click.argument("file", type=FILE)
def keygen(name: str, file: Path) -> None:
    """Make an Ed25519 key called NAME in FILE, readable by you alone; print its public halves.

    \b
    Examples:
      htfi ledger keygen witness.example/w1 w1.key
    """
    key = make_key(file, name)
    click.echo(f"as a log:     {key}")
    click.echo(f"as a witness: {key.as_witness()}")


def _find(log: LogView, which: str) -> tuple[int, bytes]:
    if which.isdecimal():
        return int(which), log.entry(int(which))
    for index, entry in enumerate(log.entries()):
        if which.encode() in entry and view.decision_id(entry) == which:
            return index, entry
    raise InvalidInput(f"no decision here is called '{which}': `htfi ledger show DIR` lists the newest")


def _demand_key(key: VerifierKey, expected: str | None) -> None:
    if expected is not None and parse_verifier_key(expected) != key:
        raise IntegrityError(f"the ledger is signed by {key}, not by the key that you demand")


def _demand_witnesses(note: Note, witnesses: Sequence[str], need: int | None) -> list[str]:
    keys = [parse_verifier_key(witness) for witness in witnesses]
    wanted = len(keys) if need is None else need
    return [key.name for key in require_witnesses(note, keys, wanted, signature_check())]


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot read {file}: {error.strerror}") from error


def _write_lines(file: Path, lines: Iterable[bytes]) -> None:
    try:
        with file.open("wb") as stream:
            stream.writelines(lines)
    except OSError as error:
        raise DependencyUnavailable(f"cannot write {file}: {error.strerror}") from error


def _write(file: Path, content: bytes) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    except OSError as error:
        raise DependencyUnavailable(f"cannot write {file}: {error.strerror}") from error
