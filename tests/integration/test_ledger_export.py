"""What `htfi ledger export` writes is enough for a verifier that shares no code with us."""

import base64
import hashlib
import json
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from htfi.apps.cli.main import main
from htfi.wiring.ledger import open_ledger

ORIGIN = "htfi.example/export"
ENTRIES = [json.dumps({"n": index}).encode() for index in range(69_999)] + [b"\x00not json\n"]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("ledger")
    log = open_ledger(folder, origin=ORIGIN, durable=False)
    log.append(ENTRIES)
    log.close()
    out = folder / "public"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["htfi", "ledger", "export", str(folder), str(out)])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 0
    return out, str(log.key)


def outside_root(leaves: list[bytes]) -> bytes:
    """MTH by the recursion of RFC 6962 §2.1."""
    if len(leaves) == 1:
        return leaves[0]
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\x01" + outside_root(leaves[:split]) + outside_root(leaves[split:])).digest()


def outside_entries(out: Path, size: int) -> list[bytes]:
    entries: list[bytes] = []
    for index in range(-(-size // 256)):
        width = min(256, size - index * 256)
        path = out / "tile" / "entries" / (f"{index:03d}" + ("" if width == 256 else f".p/{width}"))
        content = path.read_bytes()
        while content:
            length = int.from_bytes(content[:2], "big")
            entries.append(content[2 : 2 + length])
            content = content[2 + length :]
    return entries


def test_outside_verifier_finds_the_signed_root_in_the_exported_entries(exported: tuple[Path, str]) -> None:
    out, vkey = exported
    text, _, signature = (out / "checkpoint").read_text().rpartition("\n\n")
    origin, size, root = text.split("\n")
    name, encoded = signature.removeprefix("— ").split()
    raw = base64.b64decode(encoded)
    key = base64.b64decode(vkey.split("+", 2)[2])
    assert (origin, name, int(size)) == (ORIGIN, ORIGIN, len(ENTRIES))
    assert raw[:4] == hashlib.sha256(name.encode() + b"\n" + key).digest()[:4]
    Ed25519PublicKey.from_public_bytes(key[1:]).verify(raw[4:], (text + "\n").encode())
    entries = outside_entries(out, int(size))
    assert entries == ENTRIES
    leaves = [hashlib.sha256(b"\x00" + entry).digest() for entry in entries]
    assert outside_root(leaves) == base64.b64decode(root)


def test_hash_tiles_are_those_of_the_specification(exported: tuple[Path, str]) -> None:
    out, _ = exported
    leaves = [hashlib.sha256(b"\x00" + entry).digest() for entry in ENTRIES]
    level1 = [outside_root(leaves[at : at + 256]) for at in range(0, 273 * 256, 256)]
    assert (out / "tile/0/000").read_bytes() == b"".join(leaves[:256])
    assert (out / "tile/0/273.p/112").read_bytes() == b"".join(leaves[273 * 256 :])
    assert (out / "tile/1/000").read_bytes() == b"".join(level1[:256])
    assert (out / "tile/1/001.p/17").read_bytes() == b"".join(level1[256:])
    assert (out / "tile/2/000.p/1").read_bytes() == outside_root(level1[:256])
    assert len([file for file in (out / "tile").rglob("*") if file.is_file()]) == 274 + 274 + 2 + 1


def test_entries_jsonl_is_one_line_per_entry_with_its_leaf_hash(exported: tuple[Path, str]) -> None:
    lines = (exported[0] / "entries.jsonl").read_bytes().splitlines()
    assert len(lines) == len(ENTRIES)
    first, last = json.loads(lines[0]), json.loads(lines[-1])
    assert first == {
        "index": 0,
        "leaf_hash": hashlib.sha256(b"\x00" + ENTRIES[0]).hexdigest(),
        "decision": {"n": 0},
    }
    assert base64.b64decode(last["entry"]) == ENTRIES[-1]
