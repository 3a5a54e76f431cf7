"""Signed notes and keys against the vectors of golang.org/x/mod/sumdb/note and of running logs."""

import base64
from pathlib import Path

import pytest

from checks import nonempty
from htfi.adapters.keys.ed25519 import create_key, key_line, load_key, parse_key, verify_signature
from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.governance.ledger.note import parse_note, parse_verifier_key

# golang.org/x/mod/sumdb/note, note_test.go
PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PETER_SECRET = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
ENOCH = "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
PETER_LINE = (
    "— PeterNeumann "
    "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)
ENOCH_LINE = (
    "— EnochRoot "
    "rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n"
)
# A tree head of sum.golang.org, and the key that the go command trusts (cmd/go/internal/modfetch)
SUMDB = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8"
SUMDB_NOTE = (
    "go.sum database tree\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n— sum.golang.org "
    "Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n"
)


def num_holding(content: str, vkey: str) -> int:
    """How many signatures of the key hold."""
    note, key = parse_note(content), parse_verifier_key(vkey)
    return sum(
        verify_signature(key.public_key, note.text.encode(), s.payload) for s in note.signatures_of(key)
    )


@pytest.mark.parametrize(
    ("content", "vkey"),
    [(TEXT + "\n" + PETER_LINE + ENOCH_LINE, PETER), (TEXT + "\n" + ENOCH_LINE, ENOCH), (SUMDB_NOTE, SUMDB)],
)
def test_published_note_verifies(content: str, vkey: str) -> None:
    assert num_holding(content, vkey) == 1
    assert str(parse_note(content)) == content


def test_altered_note_does_not_verify() -> None:
    assert num_holding(SUMDB_NOTE.replace("20852163", "20852164"), SUMDB) == 0


def test_signing_gives_the_published_bytes() -> None:
    key = parse_key(PETER_SECRET + "\n", "the Go test")
    payload = base64.b64encode(key.verifier_key.key_id + key.sign(TEXT.encode())).decode()
    assert f"— {key.name} {payload}\n" == PETER_LINE
    assert str(key.verifier_key) == PETER


def test_text_may_hold_empty_lines() -> None:
    note = parse_note("one\n\ntwo\n\n" + PETER_LINE)
    assert note.text == "one\n\ntwo\n"


def test_signature_of_another_key_with_the_same_name_is_ignored() -> None:
    note = parse_note(TEXT + "\n" + PETER_LINE)
    other = parse_verifier_key(ENOCH)
    assert note.signatures_of(type(other)("PeterNeumann", other.algorithm, other.public_key)) == ()


@pytest.mark.parametrize(
    "content",
    [
        TEXT,
        TEXT + "\n",
        TEXT + "\n" + PETER_LINE[:-1],
        "\x01" + TEXT + "\n" + PETER_LINE,
        TEXT + "\n" + PETER_LINE.replace("PeterNeumann", "Bad Name"),
        TEXT + "\n" + PETER_LINE.replace("PeterNeumann", "Bad+Name"),
        TEXT + "\n" + PETER_LINE + "Unexpected line.\n",
        TEXT + "\n" + PETER_LINE * 101,
        TEXT + "\n" + PETER_LINE.replace("AM=", "AN="),  # spare bits of the base64 set
        TEXT + "\n" + PETER_LINE.replace("=", ""),
        TEXT + "\n— PeterNeumann x08gow==\n",
        "\n" + PETER_LINE,
        "",
    ],
)
def test_malformed_note_is_refused(content: str) -> None:
    with pytest.raises(IntegrityError):
        parse_note(content)


def test_any_mangled_verifier_key_is_refused() -> None:
    mangled = [PETER[i:j] for i in range(len(PETER)) for j in range(i + 1, len(PETER) + 1)]
    mangled.remove(PETER)
    mangled += [PETER[:i] + chr(ord(PETER[i]) + 1) + PETER[i + 1 :] for i in range(len(PETER))]
    mangled += [
        "PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==",
        "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
    ]
    for text in nonempty(mangled):
        with pytest.raises(InvalidInput):
            parse_verifier_key(text)


def test_any_mangled_signing_key_is_refused_without_showing_the_secret() -> None:
    secret = PETER_SECRET.split("+", 4)[4]
    mangled = [PETER_SECRET[:j] for j in range(len(PETER_SECRET))]
    mangled += [
        PETER_SECRET[:i] + chr(ord(PETER_SECRET[i]) + 1) + PETER_SECRET[i + 1 :]
        for i in range(len(PETER_SECRET))
    ]
    for text in nonempty(mangled):
        with pytest.raises(InvalidInput) as caught:
            parse_key(text, "k")
        assert secret[:20] not in str(caught.value)


def test_new_key_is_private_and_loads_as_made(tmp_path: Path) -> None:
    path = tmp_path / "w1.key"
    made = create_key(path, "witness.example/w1")
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_key(path).verifier_key == made.verifier_key
    assert load_key(path).sign(b"x") == made.sign(b"x")
    assert [file.name for file in tmp_path.iterdir()] == ["w1.key"]


def test_key_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "w1.key"
    create_key(path, "witness.example/w1")
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="exists already"):
        create_key(path, "witness.example/w2")
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["w1.key"]


@pytest.mark.parametrize("name", ["", "two words", "a+b", "tab\there", "bell\x07"])
def test_name_that_cannot_stand_in_a_note_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="cannot name a key"):
        create_key(tmp_path / "k", name)


def test_missing_and_unusable_key_files_are_one_line_each(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no key at"):
        load_key(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="is not a signing key"):
        load_key(tmp_path / "bytes")
    with pytest.raises(DependencyUnavailable, match="cannot read key"):
        load_key(tmp_path)
    with pytest.raises(DependencyUnavailable, match="cannot write key"):
        create_key(tmp_path / "no" / "folder", "n")


def test_key_line_round_trips() -> None:
    key = parse_key(PETER_SECRET, "k")
    seed = base64.b64decode(PETER_SECRET.split("+", 4)[4])[1:]
    assert key_line(key.verifier_key, seed) == PETER_SECRET + "\n"
