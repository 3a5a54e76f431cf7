"""`htfi ledger` as a person meets it: what it says, what it writes, and one line where something is wrong."""

import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from htfi.apps.cli.main import main
from htfi.pipeline.record.entry import decode_entry, encode_entry, entry_json
from htfi.wiring.ledger import open_ledger, open_ledger_readonly
from htfi_eval.bench.ledger_entries import json_entries

ORIGIN = "htfi.example/run"
ENTRIES = json_entries(300, seed=1)

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def htfi(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `htfi ledger …` in this process; gives exit status, standard output and standard error."""
    monkeypatch.setenv("COLUMNS", "160")

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["htfi", "ledger", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, out, err

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    log = open_ledger(tmp_path / "run", origin=ORIGIN)
    log.append(ENTRIES[:100])
    log.append(ENTRIES[100:])
    log.close()
    return tmp_path / "run"


def key_of(folder: Path) -> str:
    view = open_ledger_readonly(folder)
    view.close()
    return str(view.key)


def test_verify_says_entries_root_and_key(htfi: Run, folder: Path) -> None:
    code, out, err = htfi("verify", folder, "--key", key_of(folder))
    view = open_ledger_readonly(folder)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "300 entries, each as it was recorded",
        f"root {view.root().hex()}",
        f"3 checkpoints signed by {view.key}",
    ]
    view.close()


def test_verify_names_the_first_bad_entry_in_one_line(htfi: Run, folder: Path) -> None:
    database = sqlite3.connect(folder / "ledger.db", isolation_level=None)
    for index in (250, 17):
        database.execute("UPDATE entries SET body = ? WHERE idx = ?", (ENTRIES[0], index))
    database.close()
    code, out, err = htfi("verify", folder)
    assert (code, out) == (1, "")
    words = "entry 17 was altered: it no longer has the hash under which it was recorded"
    assert err == f"htfi: {folder / 'ledger.db'}: {words}\n"


def test_verify_refuses_a_ledger_signed_by_another_key(htfi: Run, folder: Path, tmp_path: Path) -> None:
    _, out, _ = htfi("keygen", ORIGIN, tmp_path / "k")
    other = out.splitlines()[0].split()[-1]
    code, out, err = htfi("verify", folder, "--key", other)
    assert (code, out) == (1, "")
    assert err.endswith("not by the required key\n")


def test_inclusion_proof_is_checked_without_the_ledger(htfi: Run, folder: Path, tmp_path: Path) -> None:
    key = key_of(folder)
    proof = tmp_path / "proof.json"
    assert htfi("prove", folder, "--index", 12, "--json", proof)[0] == 0
    code, text, _ = htfi("prove", folder, "--index", 12, "--size", 100)
    assert code == 0
    spicy = tmp_path / "12.tlog-proof"
    spicy.write_text(text)
    name = decode_entry(ENTRIES[12]).id
    for file, size in ((proof, 300), (spicy, 100)):
        code, out, err = htfi("check-proof", file, "--key", key)
        assert (code, err) == (0, "")
        lines = out.splitlines()
        assert lines[0] == f"entry 12 is among the {size} that {ORIGIN} signed"
        assert lines[1] == f"entry 12 begins: {name}"
        assert lines[3] == f"signed by {key}"
    assert "named by the proof itself" in htfi("check-proof", proof)[1]
    code, _, err = htfi("check-proof", spicy)
    assert (code, err) == (1, f"htfi: {spicy} does not name the log's key: give it with --key\n")


def test_consistency_proof_is_checked_without_the_ledger(htfi: Run, folder: Path, tmp_path: Path) -> None:
    proof = tmp_path / "growth.json"
    assert htfi("prove", folder, "--consistency", 100, 300, "--json", proof)[0] == 0
    code, out, _ = htfi("check-proof", proof, "--key", key_of(folder))
    assert code == 0
    assert out.splitlines()[0] == f"the 300 entries that {ORIGIN} signed extend the first 100"
    _, printed, _ = htfi("prove", folder, "--consistency", 100, 300)
    assert printed == proof.read_text()


@pytest.mark.parametrize("which", ["index", "entry", "path", "checkpoint", "log_key"])
def test_altered_proof_is_refused(htfi: Run, folder: Path, tmp_path: Path, which: str) -> None:
    proof = tmp_path / "proof.json"
    htfi("prove", folder, "--index", 12, "--json", proof)
    body = json.loads(proof.read_text())
    match which:
        case "index":
            body["index"] = 13
        case "path":
            body["path"].reverse()
        case "checkpoint":
            body["checkpoint"] = body["checkpoint"].replace("\n300\n", "\n301\n")
        case "log_key":
            body["log_key"] = htfi("keygen", ORIGIN, tmp_path / "k")[1].splitlines()[0].split()[-1]
        case _:
            body["entry"] = body["entry"].replace("A", "B", 1)
    proof.write_text(json.dumps(body))
    code, out, err = htfi("check-proof", proof)
    assert (code, out) == (1, "")
    assert err.startswith("htfi: the ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"\xff\xfe", b"c2sp.org/tlog-proof@v1\nindex 1\n", b'{"type":"x"}']
)
def test_file_that_is_no_proof_is_one_line(htfi: Run, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "proof"
    file.write_bytes(content)
    code, out, err = htfi("check-proof", file)
    assert (code, out) == (1, "")
    assert err.startswith("htfi: this is not a proof file")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [(), ("--index", 1, "--consistency", 1, 2), ("--consistency", 1, 2, "--size", 2)]
)
def test_prove_asks_for_one_thing(htfi: Run, folder: Path, arguments: tuple[object, ...]) -> None:
    code, _, err = htfi("prove", folder, *arguments)
    assert code == 1
    assert err.startswith("htfi: name what to prove")


@pytest.mark.parametrize("size", [150, 301, 10**30])
def test_proof_at_a_size_never_signed_names_the_nearest(htfi: Run, folder: Path, size: int) -> None:
    code, _, err = htfi("prove", folder, "--index", 1, "--size", size)
    nearest = "0 and 100" if size < 200 else "100 and 300"
    assert (code, err) == (
        1,
        f"htfi: {folder / 'ledger.db'} has no checkpoint of size {size}: the nearest are of {nearest}\n",
    )


def test_show_explains_one_decision(htfi: Run, folder: Path) -> None:
    decision = decode_entry(ENTRIES[12])
    code, out, _ = htfi("show", folder, 12)
    assert code == 0
    for text in (
        decision.series,
        "normal",
        "bars ahead",
        "95%",
        "log return, %",
        decision.id,
        decision.inputs.digest,
    ):
        assert text in out
    assert "".join(decision.rationale.text.split()) in "".join(out.split())
    assert htfi("show", folder, decision.id)[1] == out
    assert htfi("show", folder, 12, "--json")[1] == entry_json(ENTRIES[12]).decode() + "\n"


def test_show_without_a_number_gives_the_head(htfi: Run, folder: Path) -> None:
    code, out, _ = htfi("show", folder)
    assert code == 0
    assert f"log    {ORIGIN}" in out
    assert "newest 10 of 300" in out
    assert "S099/60s" in out


def test_show_of_entries_that_are_no_decisions_gives_their_bytes(htfi: Run, tmp_path: Path) -> None:
    log = open_ledger(tmp_path, origin=ORIGIN)
    log.append([b"\x00not a decision"])
    log.close()
    assert "not a decision" in htfi("show", tmp_path)[1]
    assert "is not a decision of this version" in htfi("show", tmp_path, 0)[1]


def test_show_of_an_entry_that_a_newer_version_wrote_is_one_line(htfi: Run, tmp_path: Path) -> None:
    log = open_ledger(tmp_path, origin=ORIGIN)
    log.append([b"\x96\x7f" + encode_entry(decode_entry(ENTRIES[12]))[2:]])
    log.close()
    code, out, err = htfi("show", tmp_path, 0, "--json")
    assert (code, out) == (1, "")
    assert err.startswith("htfi: entry 0 is not a decision of this version")
    assert "version 127, this program knows up to" in err
    assert err.count("\n") == 1
    assert "b'\\x96\\x7f" in htfi("show", tmp_path, 0)[1]  # spelled: a terminal obeys bytes as they are


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """A run's folder in whose ledger a newer version wrote the last two of five entries."""
    own = [encode_entry(decode_entry(one)) for one in ENTRIES[:5]]
    log = open_ledger(tmp_path / "newer", origin=ORIGIN)
    log.append([*own[:3], *(b"\x96\x7f" + one[2:] for one in own[3:])])
    log.close()
    return tmp_path / "newer"


LEFT_OUT = "2 entries were left out: not a decision of this version, the first at 3: update htfi"


def test_what_reads_decisions_says_which_entries_of_a_newer_version_it_left_out(
    htfi: Run, newer: Path, tmp_path: Path
) -> None:
    code, _, err = htfi("audit", newer)
    assert (code, err) == (0, f"htfi: {LEFT_OUT}\n")
    code, out, err = htfi("replay", newer)
    assert (code, out) == (1, "")
    nothing = "htfi: no decision here has a reading by a local model: there is nothing to replay"
    assert err == f"{nothing}; {LEFT_OUT}\n"
    code, _, err = htfi("export", newer, tmp_path / "out")
    assert code == 0
    assert err.startswith(
        "htfi: 2 entries stand in entries.jsonl as bytes alone: not a decision of this version"
    )


def test_files_beside_entries_of_a_newer_version_are_not_said_to_differ(htfi: Run, newer: Path) -> None:
    assert htfi("verify", newer)[::2] == (0, "")
    (newer / "settings.json").write_bytes(b"{}")
    (newer / "decisions.jsonl").write_bytes(b"{}\n" * 5)
    code, out, err = htfi("verify", newer)
    assert code == 1
    assert out.startswith("5 entries, each as it was recorded\n")
    lines, settings = err.splitlines()
    assert lines.startswith(
        f"htfi: {newer / 'decisions.jsonl'}: cannot be compared: entry 3 is not a decision of"
    )
    assert settings.startswith(
        f"htfi: {newer / 'settings.json'}: cannot be compared: entry 4 is not a decision"
    )
    assert "repeat the run's command" not in err


@pytest.mark.parametrize(
    ("which", "message"),
    [("300", "has no entry 300"), ("nobody@never", "the ledger has no decision 'nobody@never'")],
)
def test_show_of_nothing_is_one_line(htfi: Run, folder: Path, which: str, message: str) -> None:
    code, _, err = htfi("show", folder, which)
    assert code == 1
    assert message in err


def test_witnesses_cosign_and_verification_demands_them(htfi: Run, folder: Path, tmp_path: Path) -> None:
    keys: list[str] = []
    for name in ("w1", "w2"):
        _, out, _ = htfi("keygen", f"witness.example/{name}", tmp_path / f"{name}.key")
        keys.append(out.splitlines()[1].split()[-1])
    demand = ("--witness", keys[0], "--witness", keys[1])
    cosign = ("cosign", folder, "--key", tmp_path / "w1.key", "--state", tmp_path / "w1.state")
    code, out, err = htfi(*cosign)
    assert code == 0
    assert out.startswith("— witness.example/w1 ")
    assert err == f"witness.example/w1 cosigned 300 entries of {ORIGIN}\n"
    assert out in (folder / "checkpoint").read_text()
    code, _, err = htfi("verify", folder, *demand)
    assert (code, err) == (1, "htfi: the checkpoint has 1 of the 2 required cosignatures\n")
    code, out, _ = htfi("verify", folder, *demand, "--need", 1)
    assert code == 0
    assert out.splitlines()[3] == "1 cosignature, the newest by witness.example/w1"
    assert "cosigned by witness.example/w1" in htfi("show", folder)[1]
    htfi("prove", folder, "--index", 3, "--json", tmp_path / "p")
    assert htfi("check-proof", tmp_path / "p", "--witness", keys[0])[1].endswith(
        "cosigned by witness.example/w1\n"
    )
    assert htfi("check-proof", tmp_path / "p", *demand)[0] == 1
    log = open_ledger(folder, origin=ORIGIN)
    log.append([b"more"])
    assert htfi(*cosign)[0] == 0  # beside the running writer
    log.close()


def test_witness_refuses_a_ledger_that_was_begun_anew(htfi: Run, folder: Path, tmp_path: Path) -> None:
    htfi("keygen", "witness.example/w1", tmp_path / "w1.key")
    cosign = ("cosign", folder, "--key", tmp_path / "w1.key", "--state", tmp_path / "w1.state")
    assert htfi(*cosign)[0] == 0
    (folder / "ledger.db").unlink()
    log = open_ledger(folder, origin=ORIGIN)  # the same key, other entries
    log.append(ENTRIES[:50])
    code, out, err = htfi(*cosign)
    assert (code, out) == (1, "")
    assert err.startswith(f"htfi: rollback: log '{ORIGIN}' shows 50 entries after 300 were witnessed")
    log.append([b"x"] * 300)
    log.close()
    code, _, err = htfi(*cosign)
    assert code == 1
    assert err.startswith("htfi: fork: ")
    (tmp_path / "w1.state").write_text("garbage")
    assert "memory" in htfi(*cosign)[2]


def test_every_command_teaches_by_example(htfi: Run) -> None:
    for name in ("verify", "prove", "check-proof", "show", "export", "cosign", "keygen"):
        code, out, _ = htfi(name, "--help")
        assert code == 0
        assert f"  htfi ledger {name}" in out
