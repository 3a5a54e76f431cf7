"""People's approvals on running processes: from a second shell, over kills and restarts, with and without a right."""

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import forked
from htfi.adapters.keys.ed25519 import create_key
from htfi.apps.cli.main import cli
from htfi.domain.errors import AccessDenied
from htfi.domain.governance import DEFAULT_DESK
from htfi.governance.checkpoints.requests import AnswerKind
from htfi.governance.checkpoints.state import CheckpointPhase
from htfi.wiring import bundles
from htfi.wiring.approvals import GivenAnswer, RecordedQuestion, give_answer, read_approvals
from htfi.wiring.authorisation import Requester

HTFI = [*forked.HTFI]
NUM_DAYS = 60
ASKS = ("default_notional=2e6", "max_notional=1e6", "escalate_before_s=0.0")


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    rows = ["date,symbol,close"]
    for day in range(NUM_DAYS):
        date = time.strftime("%Y-%m-%d", time.gmtime(86_400 * (10_000 + day)))
        rows.append(f"{date},A,{100 + (day * 7919 % 101) / 50:.2f}")
    file = tmp_path / "prices.csv"
    file.write_text("\n".join(rows), encoding="utf-8")
    return file


@pytest.fixture
def closing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[contextlib.ExitStack]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with contextlib.ExitStack() as stack:
        yield stack


def governance(tmp_path: Path, *checkpoints: str) -> Path:
    """A governance folder whose bundle has decisions wait."""
    folder, key, draft = tmp_path / "G", tmp_path / "officer.key", tmp_path / "draft.toml"
    officer = create_key(key, "officer")
    bundles.init_folder(folder, 1, [("officer", str(officer.verifier_key))])
    assigned = [f"checkpoints.{one}" for one in (*ASKS, *checkpoints)]
    bundles.write_draft(draft, bundles.draft_bundle(folder, "officer", assigned))
    bundles.sign_bundle(draft, key)
    bundles.propose_bundle(folder, draft)
    bundles.activate_bundle(folder, draft)
    return folder


def start(
    closing: contextlib.ExitStack, source: Path | None, folder: Path, rules: Path, *words: object
) -> "subprocess.Popen[bytes]":
    """A run over a file, or over a live stream where there is none."""
    source_words = ["-", "--bar", "1m"] if source is None else [str(source)]
    options = ["--governance", str(rules), "--out", str(folder), "--plain", "--no-report"]
    run = closing.enter_context(
        forked.Popen(
            [*HTFI, "run", *source_words, *options, *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "HTFI_PIPELINE__GROUP_MS": "1", "HTFI_PIPELINE__SNAPSHOT_S": "0.1"},
        )
    )
    closing.callback(run.kill)
    return run


def finish(closing: contextlib.ExitStack, prices: Path, folder: Path, rules: Path) -> None:
    """Run to the end of the file."""
    run = start(closing, prices, folder, rules)
    _, said = run.communicate(timeout=60.0)
    assert run.returncode == 0, said.decode()


def wait_for(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    until_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < until_s, "it did not come in time"
        time.sleep(0.01)


def questions(folder: Path) -> list[RecordedQuestion]:
    return list(read_approvals(folder).values()) if (folder / "ledger.db").exists() else []


def lines(folder: Path) -> list[dict[str, object]]:
    path = folder / "decisions.jsonl"
    whole = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in whole if line.endswith(b"\n")]


def released(folder: Path) -> list[str]:
    """The ids of decisions that were released in time or later, in order."""
    found = [line["decision"] for line in lines(folder) if "decision" in line]
    return [str(one["id"]) for one in found if isinstance(one, dict)]


def verify(folder: Path) -> None:
    checked = CliRunner().invoke(
        cli, ["ledger", "verify", str(folder), "--recompute"], catch_exceptions=False
    )
    assert (checked.exit_code, checked.stderr) == (0, "")


def answer(
    folder: Path,
    number: int,
    who: Requester | str,
    kind: AnswerKind = AnswerKind.APPROVE,
) -> GivenAnswer:
    seen = questions(folder)[number - 1].state.question.digest
    requester = Requester(who) if isinstance(who, str) else who
    return give_answer(folder, str(number), kind, requester, seen=seen, why="checked")


@pytest.mark.slow
def test_approval_from_a_second_shell_releases_while_a_live_run_goes_on(
    closing: contextlib.ExitStack, tmp_path: Path
) -> None:
    folder, rules = tmp_path / "run", governance(tmp_path, "deadline_s=4.0")
    run = start(closing, None, folder, rules)
    assert run.stdin is not None
    began_s = time.time() - 3_000
    for number in range(60):
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began_s + 40 * number))
        tick = {"time": moment, "symbol": "A", "price": 100 + (number * 7919 % 101) / 50, "size": 10}
        run.stdin.write(json.dumps(tick).encode() + b"\n")
    run.stdin.flush()  # and then the stream is silent
    wait_for(lambda: len(questions(folder)) >= 10)
    given = answer(folder, 1, "Ann")
    assert (given.is_recorded, given.step.by) == (True, "Ann")
    wait_for(lambda: bool(released(folder)))
    with pytest.raises(AccessDenied, match="refused: it is approved already"):
        answer(folder, 1, "Ann")
    wait_for(lambda: all(one.state.is_final for one in questions(folder)))
    asked = questions(folder)
    assert asked[0].state.phase is CheckpointPhase.APPROVED
    assert {one.state.phase for one in asked[1:]} == {CheckpointPhase.EXPIRED_WITHHELD}
    with pytest.raises(AccessDenied, match="refused: too late: the deadline was "):
        answer(folder, 2, "Ann")
    run.stdin.close()
    assert run.wait(60.0) == 0
    assert released(folder) == [f"{asked[0].state.question.decision}/released"]
    verify(folder)


@pytest.mark.slow
def test_kill_around_an_approval_releases_once(
    closing: contextlib.ExitStack, prices: Path, tmp_path: Path
) -> None:
    rules, draw = governance(tmp_path, "deadline_s=600.0"), random.Random(20261124)
    folder = tmp_path / "run"
    approved: list[str] = []
    for number in (1, 2):
        run = start(closing, prices, folder, rules, "--pace", NUM_DAYS * 86_400 / 7)
        wait_for(lambda: len(questions(folder)) >= 3 + 2 * len(approved))
        asked = questions(folder)[number - 1].state.question
        killer = forked.Popen(["sh", "-c", f"sleep {draw.random() * 0.06:.3f}; kill -9 {run.pid}"])
        answer(folder, number, "Ann")
        killer.wait(10.0)
        run.wait(30.0)
        assert run.returncode == -signal.SIGKILL
        approved.append(f"{asked.decision}/released")
    finish(closing, prices, folder, rules)
    assert sorted(released(folder)) == sorted(approved)
    assert [one.state.phase.value for one in questions(folder)[:2]] == ["approved"] * 2
    assert len(questions(folder)) == NUM_DAYS - 20
    verify(folder)


@pytest.mark.slow
def test_run_that_ended_with_open_requests_takes_the_answers_when_it_is_resumed(
    closing: contextlib.ExitStack, prices: Path, tmp_path: Path
) -> None:
    folder, rules = tmp_path / "run", governance(tmp_path, "deadline_s=600.0", "num_approvals=2")
    finish(closing, prices, folder, rules)
    assert len(questions(folder)) == NUM_DAYS - 20
    for who in ("Ann", "Bo"):
        assert not answer(folder, 1, who).goes_on
    answer(folder, 2, "Ann")
    answer(folder, 2, "Ann")  # once more: it is refused when the run takes it
    answer(folder, 3, "Bo", AnswerKind.DENY)
    assert released(folder) == []
    finish(closing, prices, folder, rules)
    first, second, third, *rest = questions(folder)
    assert released(folder) == [f"{first.state.question.decision}/released"]
    assert first.state.approvers == ("Ann", "Bo")
    assert second.state.phase is CheckpointPhase.APPROVED_ONCE
    assert second.steps[-1].detail == "approve: Ann has approved it already"
    assert third.state.phase is CheckpointPhase.DENIED
    assert {one.state.phase for one in rest} == {CheckpointPhase.ASKED}
    verify(folder)


def test_run_under_people_takes_the_signed_answers_of_those_with_the_right_alone(
    closing: contextlib.ExitStack, prices: Path, tmp_path: Path
) -> None:
    pytest.importorskip("cedarpy")
    folder, rules = tmp_path / "run", governance(tmp_path, "deadline_s=600.0")
    people = ""
    for name, desk in (("ann", DEFAULT_DESK), ("bo", "rates")):
        key = create_key(tmp_path / f"{name}.key", f"example.com/{name}")
        people += f'[[people]]\nname = "{name}"\nkey = "{key.verifier_key}"\nroles = ["approver"]\ndesks = ["{desk}"]\n'
    (rules / "people.toml").write_text(people)
    finish(closing, prices, folder, rules)
    answer(folder, 1, "ann")  # in her name, without her signature
    with pytest.raises(AccessDenied, match="refused: bo may not: no rule allows it"):
        answer(folder, 2, Requester("", rules, tmp_path / "bo.key"))
    answer(folder, 3, Requester("", rules, tmp_path / "ann.key"))
    finish(closing, prices, folder, rules)
    unsigned, other_desk, signed = questions(folder)[:3]
    assert released(folder) == [f"{signed.state.question.decision}/released"]
    assert (unsigned.steps[-1].step.value, other_desk.steps[-1].step.value) == ("refused", "refused")
    assert "bo may not: no rule allows it" in other_desk.steps[-1].detail
    assert signed.state.approvers == ("ann",)
    verify(folder)
    (rules / "people.toml").write_text(people.replace('name = "ann"', 'name = "gone"'))
    with pytest.raises(AccessDenied):
        answer(folder, 4, Requester("ann", rules, tmp_path / "ann.key"))
    verify(folder)  # the record does not depend on who is in the directory today
