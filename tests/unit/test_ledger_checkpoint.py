"""Checkpoints, cosignatures and the policy of required witnesses, on one that real witnesses signed."""

import pytest

from htfi.adapters.keys.ed25519 import signing_key, verify_signature
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.governance.ledger.checkpoint import (
    Checkpoint,
    cosign,
    cosignature_time_s,
    open_checkpoint,
    parse_checkpoint,
    require_witnesses,
    sign_checkpoint,
)
from htfi.governance.ledger.note import SignedNote, VerifierKey, parse_note, parse_verifier_key

# A checkpoint of a CT log in staging, cosigned by public witnesses on 2026-05-23
STAGING = """arche2025h1.staging.ct.transparency.dev
1432088532
U7WM79jrzyhGZ5/GUBTpM7NzwdyfFx61t3RovgcC4Ro=

— arche2025h1.staging.ct.transparency.dev zTM8sQAAAZ5W0WdjBAMARjBEAiBjW5IQf9pvsYLfQFX6hoGREPMHbdQ3urbllzalApkptQIgIpwtEroeW2BXaHAI4kJXFbon5Ch9MNL5zRNZ55lvGt0=
— arche2025h1.staging.ct.transparency.dev ui8GwCF1+kWqZrxGdhj4aX3gcw7XUlXQQabg/27lefwhUkzbC3NygNI75MdhL1bfTW9g8Ei59RA23oHP7Ry1k3ZFWwQ=
— transparency.dev/DEV:witness-little-garden 2AQqhwAAAABqEiEgzgFIqqhbUoDwjMWE6UP8nd8/KYTzwZ2rhIgcqoXHAwVkjZr4AscylP3v7sEodkRAErumC2q44vdgJY096st5BQ==
— witness1.smartit.nu/witness1 pIyCDwAAAABqEiEghIp82KWebrw7/oHQwlTAm3g2RKS4+eebl8eO0WH+/iEcxZ75W3u5hNI7TOQtmJbqmNWVuE0tgh0XwzdZsDsUAQ==
— remora.n621.de 2net5wAAAABqEiEgPlfF3V06o0Y+fHM+J5J9s27wgxxcOVSpZ/2g/KSiXCg9DEZI+aVCIobWX9sXTynk5XeU/zZ0WBxtqB0DrAWfBw==
— witness.stagemole.eu Z/euoAAAAABqEiEgw0i+7g2ENfDAWHmtRzCfKTHSDwYDJA2NmKeGi9Y8FtEyOUvVr+AJmIY/2TUFucgKi7lI7cUiOvKFYe/TmN9DAg==
"""  # noqa: E501 - verbatim
LOG = parse_verifier_key(
    "arche2025h1.staging.ct.transparency.dev+ba2f06c0+AU0vHmlGCS/PdN8b2OaGmKprLI8HKM+dJ472xgFYh15f"
)
WITNESSES = [
    parse_verifier_key(text)
    for text in (
        "remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2",
        "transparency.dev/DEV:witness-little-garden+d8042a87+BCtusOxINQNUTN5Oj8HObRkh2yHf/MwYaGX4CPdiVEPM",
        "witness1.smartit.nu/witness1+a48c820f+BPSFWg9G6KPiO7QPryYO5Xq4oYJJ+kAvLKLSimDhoxMO",
        "witness.stagemole.eu+67f7aea0+BEqSG3yu9YrmcM3BHvQYTxwFj3uSWakQepafafpUqklv",
    )
]
ABSENT = parse_verifier_key("rgdd.se/poc-witness+db03732e+BCjJKlo6BU0xfIb8LutqerIFTWIXEA0L5n3tW3QyPFgG")
ROOT = bytes(range(32))
SIGNER = signing_key("log.example/desk", b"\x01" * 32)


def test_real_checkpoint_opens_under_its_logs_key() -> None:
    checkpoint, note = open_checkpoint(STAGING, LOG, verify_signature)
    assert (checkpoint.origin, checkpoint.size) == (LOG.name, 1_432_088_532)
    assert len(note.signatures) == 6


def test_real_cosignatures_hold_and_carry_their_time() -> None:
    note = parse_note(STAGING)
    for key in WITNESSES:
        (signature,) = note.signatures_of(key)
        assert cosignature_time_s(note.text, signature, key, verify_signature) == 1_779_573_024


def test_four_of_four_real_witnesses_satisfy_the_policy() -> None:
    note = parse_note(STAGING)
    assert require_witnesses(note, WITNESSES, 4, verify_signature) == WITNESSES
    assert require_witnesses(note, [*WITNESSES, ABSENT], 4, verify_signature) == WITNESSES


def test_policy_fails_where_a_witness_is_absent() -> None:
    with pytest.raises(IntegrityError, match="has 4 of the 5 required cosignatures"):
        require_witnesses(parse_note(STAGING), [*WITNESSES, ABSENT], 5, verify_signature)


def test_log_key_of_a_witness_counts_as_its_cosigning_key() -> None:
    as_log = VerifierKey(WITNESSES[0].name, 1, WITNESSES[0].public_key)
    assert require_witnesses(parse_note(STAGING), [as_log], 1, verify_signature) == [WITNESSES[0]]


def test_one_key_under_two_names_is_not_two_witnesses() -> None:
    twin = VerifierKey("twin.example", 4, WITNESSES[0].public_key)
    with pytest.raises(InvalidInput, match="share one public key"):
        require_witnesses(parse_note(STAGING), [WITNESSES[0], twin], 2, verify_signature)


def test_more_witnesses_required_than_named_is_refused() -> None:
    with pytest.raises(InvalidInput, match="2 witnesses are required, but only 1 named"):
        require_witnesses(parse_note(STAGING), WITNESSES[:1], 2, verify_signature)


def test_false_cosignature_of_a_named_witness_condemns_the_checkpoint() -> None:
    later = STAGING.replace("2net5wAAAABqEiEg", "2net5wAAAABqEiEh")  # one second later than it signed
    with pytest.raises(IntegrityError, match=r"of witness remora\.n621\.de is not valid"):
        require_witnesses(parse_note(later), WITNESSES, 1, verify_signature)


def test_checkpoint_text_is_origin_size_root_and_extensions() -> None:
    checkpoint = Checkpoint("log.example/desk", 7, ROOT, ("more",))
    text = "log.example/desk\n7\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\nmore\n"
    assert checkpoint.text() == text
    assert parse_checkpoint(text) == checkpoint


@pytest.mark.parametrize(
    "text",
    [
        "",
        "origin\n7\n",
        "origin\n7\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "\n7\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n",
        "origin\n07\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n",
        "origin\n-7\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n",
        "origin\n٧\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n",
        "origin\n9223372036854775808\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n",
        "origin\n7\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=\n",
        "origin\n7\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==\n",
        "origin\n7\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n\nmore\n",
    ],
)
def test_malformed_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(IntegrityError):
        parse_checkpoint(text)


def test_checkpoint_of_another_log_is_refused() -> None:
    note = sign_checkpoint(Checkpoint("log.example/desk", 7, ROOT), SIGNER)
    with pytest.raises(IntegrityError, match=r"is of log 'log.example/desk', not of"):
        open_checkpoint(str(note), LOG, verify_signature)


def test_checkpoint_without_our_signature_is_refused() -> None:
    note = sign_checkpoint(Checkpoint("log.example/desk", 7, ROOT), signing_key("x", b"\x02" * 32))
    key = VerifierKey("log.example/desk", 1, SIGNER.public_key)
    with pytest.raises(IntegrityError, match="is not signed by"):
        open_checkpoint(str(note), key, verify_signature)


def test_altered_checkpoint_is_refused() -> None:
    note = sign_checkpoint(Checkpoint("log.example/desk", 7, ROOT), SIGNER)
    key = VerifierKey("log.example/desk", 1, SIGNER.public_key)
    with pytest.raises(IntegrityError, match="has an invalid signature"):
        open_checkpoint(str(note).replace("\n7\n", "\n8\n"), key, verify_signature)


def test_cosignature_covers_extension_lines_and_time() -> None:
    text = Checkpoint("log.example/desk", 7, ROOT, ("more",)).text()
    signature = cosign(text, "w.example", 1_700_000_000, SIGNER)
    key = VerifierKey("w.example", 4, SIGNER.public_key)
    assert cosignature_time_s(text, signature, key, verify_signature) == 1_700_000_000
    assert cosignature_time_s(text.replace("more", "less"), signature, key, verify_signature) is None
    plain = SignedNote(text, (signature,)).signatures_of(VerifierKey("w.example", 1, SIGNER.public_key))
    assert plain == ()
