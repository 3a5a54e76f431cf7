"""`htfi ledger prove, check-proof, cosign, keygen`: evidence that holds without the ledger or its keeper."""

import time
from pathlib import Path

import click

from htfi.apps.cli.ledger import entries as view
from htfi.apps.cli.ledger.options import (
    FILE,
    FOLDER,
    KEY,
    NUM_WITNESSES,
    WITNESS,
    read_file,
    reading_options,
    require_cosignatures,
    require_key,
    write_file,
)
from htfi.domain.errors import InvalidInput
from htfi.governance.ledger.export import (
    InclusionProof,
    check_proof,
    encode_proof,
    parse_proof,
    prove_consistency,
    prove_inclusion,
    write_tlog_proof,
)
from htfi.governance.ledger.note import parse_verifier_key
from htfi.wiring.ledger import (
    create_signing_key,
    open_ledger_for_cosigning,
    open_ledger_readonly,
    open_witness,
    signature_verifier,
)


@click.command("prove", short_help="Prove that an entry is in the ledger, or that the ledger only grew.")
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
@reading_options
def prove_command(
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
        raise InvalidInput("name what to prove: --index N [--size M], or --consistency M N")
    log = open_ledger_readonly(folder)
    try:
        if consistency is not None:
            proof = prove_consistency(log, *consistency)
        else:
            proof = prove_inclusion(log, index or 0, size)
    finally:
        log.close()
    if json_file is not None:
        write_file(json_file, encode_proof(proof))
        from htfi.apps.display.tables import print_line

        print_line(
            f"proof written to {json_file}: check it with `htfi ledger check-proof {json_file} --key {log.key}`"
        )
    elif isinstance(proof, InclusionProof):
        click.echo(write_tlog_proof(proof), nl=False)
    else:
        click.echo(encode_proof(proof), nl=False)


@click.command("check-proof", short_help="Check a proof with a public key only.")
@click.argument("file", type=FILE)
@KEY
@WITNESS
@NUM_WITNESSES
def check_proof_command(
    file: Path, key_text: str | None, witnesses: tuple[str, ...], need: int | None
) -> None:
    """Check a proof with nothing but the log's public key; no ledger, no network.

    Without --key the key named in the proof is used, and printed for you to compare.

    \b
    Examples:
      htfi ledger check-proof proof.json --key htfi.example/run+bd1cfb4f+AV0R…
      htfi ledger check-proof 12.tlog-proof --key htfi.example/run+bd1cfb4f+AV0R…
    """
    proof = parse_proof(read_file(file))
    named = key_text or proof.log_key
    if named is None:
        raise InvalidInput(f"{file} does not name the log's key: give it with --key")
    key = parse_verifier_key(named)
    checkpoint, note = check_proof(proof, key, signature_verifier())
    found = require_cosignatures(note, witnesses, need)
    from htfi.apps.display.tables import print_line

    if isinstance(proof, InclusionProof):
        print_line(f"entry {proof.index} is among the {checkpoint.size:,} that {checkpoint.origin} signed")
        print_line(f"entry {proof.index} begins: {view.rationale_opening(proof.entry)}")
    else:
        print_line(
            f"the {checkpoint.size:,} entries that {checkpoint.origin} signed extend the first {proof.old_size:,}"
        )
        print_line(f"root of the first {proof.old_size:,}: {proof.old_root.hex()}")
    print_line(f"root {checkpoint.root.hex()}")
    print_line(
        f"signed by {key}" + ("" if key_text else "  (named by the proof itself: compare it with the log's)")
    )
    if found:
        print_line(f"cosigned by {', '.join(found)}")


@click.command("cosign", short_help="Cosign as a witness.")
@FOLDER
@click.option(
    "--key",
    "key_file",
    metavar="FILE",
    type=FILE,
    required=True,
    help="The witness's key, made by `htfi ledger keygen`.",
)
@click.option(
    "--state",
    metavar="FILE",
    type=FILE,
    required=True,
    help="File of what this witness has seen; created at first use.",
)
@click.option("--log-key", metavar="VKEY", help="Require that this verifier key signed the log.")
def cosign_command(folder: Path, key_file: Path, state: Path, log_key: str | None) -> None:
    """Act as a witness: cosign the newest checkpoint if it extends all that this witness has seen.

    A rollback or a fork is refused. The signature line goes to standard output and into the ledger.

    \b
    Examples:
      htfi ledger keygen witness.example/w1 w1.key
      htfi ledger cosign DIR --key w1.key --state w1.state
    """
    log = open_ledger_for_cosigning(folder)
    try:
        require_key(log.key, log_key)
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
    click.echo(f"{witness.name} cosigned {checkpoint.size:,} entries of {checkpoint.origin}", err=True)


@click.command("keygen", short_help="Make a witness's key.")
@click.argument("name")
@click.argument("file", type=FILE)
def keygen_command(name: str, file: Path) -> None:
    """Make an Ed25519 key called NAME in FILE, which only you can read; print its verifier keys.

    \b
    Examples:
      htfi ledger keygen witness.example/w1 w1.key
    """
    key = create_signing_key(file, name)
    click.echo(f"as a log:     {key}")
    click.echo(f"as a witness: {key.as_witness()}")
