"""`htfi approvals` on a run's folder: what is shown, what is left for the run, and who is refused."""

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from htfi.adapters.keys.ed25519 import create_key, verify_signature
from htfi.apps.cli.main import cli
from htfi.domain.errors import AccessDenied, InvalidInput
from htfi.domain.time import NS_PER_S
from htfi.governance.checkpoints.answers import AnswerRights, judge_answer, local_rights
from htfi.governance.checkpoints.config import DeadlineDefault
from htfi.governance.checkpoints.reasons import CheckpointCause, CheckpointReason
from htfi.governance.checkpoints.requests import AnswerKind, ApprovalQuestion
from htfi.governance.checkpoints.state import CheckpointPhase, advance, asked_step
from htfi.governance.control.entries import CheckpointMoved, encode_governance
from htfi.pipeline.checkpoints import WaitingDecisions
from htfi.wiring.approvals import read_approvals, waiting_answers
from htfi.wiring.authorisation import open_access, run_key
from htfi.wiring.control import GovernanceLogFile, governance_entries
from htfi.wiring.ledger import open_ledger

DECISION = "SPX/1d@2008-10-10T20:00:00Z"
REASONS = (CheckpointReason(CheckpointCause.REGIME, "the regime is shock"),)


def asked(deadline_s: float = 3_600.0, num_approvals: int = 1) -> ApprovalQuestion:
    now_ns = time.time_ns()
    deadline_ns = now_ns + round(deadline_s * NS_PER_S)
    return ApprovalQuestion(
        DECISION, "SPX", now_ns, deadline_ns, 0, num_approvals, DeadlineDefault.WITHHOLD, REASONS, "SPX falls",
        desks=("equities",),
    )  # fmt: skip


def folder_with(question: ApprovalQuestion, folder: Path) -> Path:
    open_ledger(folder, origin="example.com/desk").close()
    step = asked_step(question)
    entry = CheckpointMoved(
        step.at_ns, 1, DECISION, "asked", seen=step.seen, detail=step.detail, question=question
    )
    log = GovernanceLogFile(folder)
    log.append(encode_governance(entry))
    log.close()
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return folder_with(asked(), tmp_path / "run")


@pytest.fixture
def governance(tmp_path: Path) -> Path:
    pytest.importorskip("cedarpy")
    folder = tmp_path / "G"
    folder.mkdir()
    lines: list[str] = []
    for name, roles, desks in (
        ("ann", ["approver"], ["equities"]),
        ("bo", ["approver"], ["rates"]),
        ("cy", ["approver"], ["equities"]),
    ):
        key = create_key(tmp_path / f"{name}.key", f"example.com/{name}")
        lines.append(
            f'[[people]]\nname = "{name}"\nkey = "{key.verifier_key}"\nroles = {roles}\ndesks = {desks}\n'
        )
    create_key(tmp_path / "eve.key", "example.com/eve")
    (folder / "people.toml").write_text("\n".join(lines))
    return folder


def approvals(*words: object) -> Result:
    return CliRunner().invoke(cli, ["approvals", *map(str, words)])


def seen(folder: Path) -> str:
    return next(iter(read_approvals(folder).values())).state.question.digest[:8]


def take_answers(folder: Path, rights: AnswerRights) -> CheckpointPhase:
    """What the run does with the answers: judge them, log the steps."""
    log = GovernanceLogFile(folder)

    def append(entries: Sequence[CheckpointMoved]) -> None:
        log.append_all([encode_governance(entry) for entry in entries])

    logged = [entry for entry in governance_entries(folder) if isinstance(entry, CheckpointMoved)]
    waiting = WaitingDecisions(logged, append, time.time_ns)
    for answer in waiting_answers(folder):
        waiting.take(answer, lambda: rights, before=1)
    log.close()
    return read_approvals(folder)[DECISION].state.phase


def test_show_prints_what_is_asked_and_its_digest(run: Path) -> None:
    shown = approvals("show", run, 1)
    question = read_approvals(run)[DECISION].state.question
    assert shown.exit_code == 0
    assert question.text in shown.output
    assert question.digest in shown.output
    row = msgspec.json.decode(approvals("show", run, DECISION, "--json").output)
    assert (row["digest"], row["text"], row["phase"]) == (question.digest, question.text, "asked")


def test_approval_is_left_for_the_run_which_records_it(run: Path) -> None:
    given = approvals("approve", run, 1, "--seen", seen(run), "--by", "Ann Lee", "--why", "checked")
    assert given.exit_code == 0
    assert given.output.startswith(f"{DECISION}: approved by Ann Lee: checked; ")
    assert "1 answer not taken yet" in approvals("list", run).output.replace("\n", " ")
    assert take_answers(run, local_rights(run_key(run), verify_signature)) is CheckpointPhase.APPROVED
    assert "nothing waits for people" in approvals("list", run).output
    assert "approved" in approvals("list", run, "--all").output
    assert take_answers(run, local_rights(run_key(run), verify_signature)) is CheckpointPhase.APPROVED
    assert [step.step.value for step in read_approvals(run)[DECISION].steps] == ["asked", "approved"]


def test_answer_that_names_another_text_is_not_left(run: Path) -> None:
    given = approvals("approve", run, 1, "--seen", "0" * 8, "--by", "Ann Lee", "--why", "checked")
    assert isinstance(given.exception, InvalidInput)
    assert "--seen: '00000000' is not what is asked" in str(given.exception)
    assert waiting_answers(run) == []


def test_late_approval_is_refused_and_recorded(tmp_path: Path) -> None:
    late = folder_with(asked(deadline_s=1e-9), tmp_path / "run")
    given = approvals("approve", late, 1, "--seen", seen(late), "--by", "Ann Lee", "--why", "checked")
    assert isinstance(given.exception, AccessDenied)
    assert str(given.exception).startswith("refused: too late: the deadline was ")
    assert (
        take_answers(late, local_rights(run_key(late), verify_signature)) is CheckpointPhase.EXPIRED_WITHHELD
    )
    steps = read_approvals(late)[DECISION].steps
    assert [step.step.value for step in steps] == ["asked", "expired", "refused"]
    assert steps[-1].by == "Ann Lee"


def test_with_a_governance_folder_rules_decide_and_the_run_judges_again(
    tmp_path: Path, run: Path, governance: Path
) -> None:
    def answer(who: str, verb: str = "approve", *more: object) -> Result:
        return approvals(
            verb, run, 1, "--seen", seen(run), "--governance", governance, "--key", tmp_path / f"{who}.key",
            "--why", "checked", *more,
        )  # fmt: skip

    wrong_desk = answer("bo")
    assert isinstance(wrong_desk.exception, AccessDenied)
    assert str(wrong_desk.exception).startswith(
        "refused: bo may not: no rule allows it (it is of desk equities);"
    )
    stranger = answer("eve")
    assert isinstance(stranger.exception, AccessDenied)
    assert "is the key of no person in people.toml" in str(stranger.exception)
    to_stranger = answer("ann", "delegate", "--to", "eve")
    assert "eve is not in the directory of people" in str(to_stranger.exception)
    to_wrong_desk = answer("ann", "delegate", "--to", "bo")
    assert "bo may not: no rule allows it" in str(to_wrong_desk.exception)
    assert answer("ann", "delegate", "--to", "cy").exit_code == 0
    assert answer("cy").exit_code == 0
    access = open_access(governance)
    rights = AnswerRights(run_key(run), access.directory, access.authoriser, verify_signature)
    assert take_answers(run, rights) is CheckpointPhase.APPROVED
    assert [(step.step.value, step.by) for step in read_approvals(run)[DECISION].steps] == [
        ("asked", ""),
        ("refused", "bo"),
        ("refused", "ann"),
        ("refused", "ann"),
        ("delegated", "ann"),
        ("approved", "cy"),
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"why": "no"}, "approve: what was signed is not what the answer says"),
        ({"seen": "0" * 64}, "approve: what was signed is not what the answer says"),
        ({"answer": AnswerKind.DENY}, "deny: what was signed is not what the answer says"),
        ({"signed": ""}, "approve: the request is not signed"),
        ({}, "approve: the request was signed for another run"),
    ],
)
def test_answer_that_was_altered_or_is_for_another_run_is_refused_by_the_run(
    change: dict[str, object], reason: str, tmp_path: Path, run: Path, governance: Path
) -> None:
    approvals(
        "approve", run, 1, "--seen", seen(run), "--governance", governance, "--key", tmp_path / "ann.key",
        "--why", "checked",
    )  # fmt: skip
    (answer,) = waiting_answers(run)
    access = open_access(governance)
    key = run_key(run) if change else "another"
    rights = AnswerRights(key, access.directory, access.authoriser, verify_signature)
    state = read_approvals(run)[DECISION].state
    event = judge_answer(msgspec.structs.replace(answer, **change), state, rights, time.time_ns())
    after, steps = advance(state, event)
    assert (after.phase, steps[-1].step.value) == (CheckpointPhase.ASKED, "refused")
    assert steps[-1].detail.startswith(reason)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--key", "k"), "give the governance folder"),
        (("--governance", "."), "there is no people.toml"),
    ],
)
def test_key_and_governance_folder_go_together(words: tuple[str, ...], message: str, run: Path) -> None:
    given = approvals("approve", run, 1, "--seen", seen(run), "--why", "checked", *words)
    assert isinstance(given.exception, InvalidInput)
    assert message in str(given.exception)


def test_answer_without_a_name_is_a_usage_error(run: Path) -> None:
    given = approvals("approve", run, 1, "--seen", seen(run), "--why", "checked")
    assert given.exit_code == 2
    assert "Missing option '--by'" in given.output


def test_nothing_asked_is_one_line(tmp_path: Path) -> None:
    open_ledger(tmp_path / "quiet", origin="example.com/desk").close()
    assert approvals("list", tmp_path / "quiet").output == f"{tmp_path / 'quiet'}: nothing waits for people\n"
    missing = approvals("list", tmp_path / "nowhere")
    assert isinstance(missing.exception, InvalidInput)
    unknown = approvals("show", tmp_path / "quiet", "7")
    assert "asks nothing about '7'" in str(unknown.exception)
