"""Re-enabling and promoting under a governance folder with people: its rules decide, and the run checks again."""

import shutil
import time
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from htfi.adapters.keys.ed25519 import create_key
from htfi.adapters.stores.control_folder import CONTROL_FOLDER, read_requests, write_request
from htfi.apps.cli.main import cli
from htfi.domain.decision import PolicyOutcome
from htfi.domain.errors import AccessDenied, InvalidInput
from htfi.domain.events import Bar, FeedItem
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.governance.control.entries import Reenabled, ReenablingRefused, Stopped, decode_governance
from htfi.governance.control.requests import ReenableRequest, StopRequest
from htfi.pipeline.governance_ports import NoGovernanceLog, RequestQueue
from htfi.pipeline.governed import RunGovernance
from htfi.wiring.authorisation import Requester, answer_rights, folder_key, proposer_of
from htfi.wiring.bundles import init_folder
from htfi.wiring.cluster.bundles import name_nodes
from htfi.wiring.control import open_governance
from htfi.wiring.governance_log import open_governance_log
from htfi.wiring.ledger import open_ledger
from htfi.wiring.loop import build_loop
from htfi.wiring.sandbox.promotion import promote
from htfi.wiring.settings import load_settings
from memory_run import ListFeed, MemoryLedger, MemoryOutlet
from sandbox_verdicts import record_verdict, settings_file

pytest.importorskip("cedarpy")
WHO = {"by": "mo", "why": "a test", "now_ns": 5}
PERMIT = 'permit (principal is Person, action == Action::"reenable", resource);'
ERRING_FORBIDS = [
    "context.at_ns + 9223372036854775807 < 0",  # more than a number holds
    "principal.until_ns < 0",  # what this person has not
]


def days(symbol: str) -> list[FeedItem]:
    """41 daily bars."""
    return [
        Bar(
            at * NS_PER_DAY, at * NS_PER_DAY, "test", at, symbol, "1d", (at - 1) * NS_PER_DAY, at * NS_PER_DAY,
            *[100.0 + at * 7919 % 13 / 10] * 4,
        )
        for at in range(1, 42)
    ]  # fmt: skip


@pytest.fixture
def governance(tmp_path: Path) -> Path:
    folder = tmp_path / "G"
    lines: list[str] = []
    for name, role in (("ann", "chief_risk_officer"), ("bo", "operator"), ("mo", "model_officer")):
        key = create_key(tmp_path / f"{name}.key", f"example.com/{name}")
        lines.append(f'[[people]]\nname = "{name}"\nkey = "{key.verifier_key}"\nroles = ["{role}"]\n')
    open_governance_log(folder).close()
    (folder / "people.toml").write_text("\n".join(lines))
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    open_ledger(tmp_path / "run", origin="htfi.run").close()
    return tmp_path / "run"


def htfi(*words: object) -> Result:
    return CliRunner().invoke(cli, list(map(str, words)))


def reenable(run: Path, governance: Path, tmp_path: Path, who: str) -> Result:
    return htfi(
        "reenable", run, "--governance", governance, "--key", tmp_path / f"{who}.key", "--why", "repaired"
    )


def requests_of(run: Path) -> list[ReenableRequest]:
    found, _ = read_requests(run / CONTROL_FOLDER)
    return [one for one in found if isinstance(one, ReenableRequest)]


def entries_after(request: ReenableRequest, run: Path, governance: Path) -> tuple[list[object], bool]:
    """What a stopped run logs of a request, and whether it releases after it."""
    log, queue = NoGovernanceLog(), RequestQueue()
    rules = RunGovernance(
        load_settings(environment={}).policy,
        log,
        queue,
        lambda: answer_rights(run, governance),
        lambda: NS_PER_S,
    )
    ledger, outlet = MemoryLedger([]), MemoryOutlet([])
    loop = build_loop(load_settings(environment={}), ListFeed(days("A")), ledger, outlet, governance=rules)
    queue.push(StopRequest("stop-1", 1, "firm", "bo", "a drill"))
    queue.push(request)
    loop.run(lambda: None)
    held = {loop.recorder.decision(at).verdict.outcome for at in range(loop.recorder.num_recorded)}
    return [decode_governance(entry) for entry, _ in log.recorded()][1:], PolicyOutcome.WITHHOLD not in held


def test_reenabling_counts_where_a_person_with_the_right_signed_it(
    run: Path, governance: Path, tmp_path: Path
) -> None:
    done = reenable(run, governance, tmp_path, "ann")
    assert done.exit_code == 0, done.output
    (request,) = requests_of(run)
    (entry,), is_released = entries_after(request, run, governance)
    assert isinstance(entry, Reenabled)
    assert (entry.by, bool(entry.signed), is_released) == ("ann", True, True)


def test_reenabling_without_a_right_leaves_nothing_for_the_run(
    run: Path, governance: Path, tmp_path: Path
) -> None:
    denied = reenable(run, governance, tmp_path, "bo")
    assert isinstance(denied.exception, AccessDenied)
    assert str(denied.exception).startswith("bo may not re-enable (scope firm): no rule allows it")
    unsigned = htfi("reenable", "--governance", governance, "--by", "ann", "--why", "x")
    assert isinstance(unsigned.exception, InvalidInput)
    assert "--key: with --governance a request is signed" in str(unsigned.exception)
    assert requests_of(run) == []


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"signed": ""}, "the request is not signed"),
        ({"scope": "series:A"}, "what was signed is not what the request says"),
        ({"breaker": "clock"}, "what was signed is not what the request says"),
        ({"by": "bo"}, "it is signed by ann, not by bo"),
    ],
)
def test_request_that_was_forged_or_altered_is_logged_as_refused_and_the_stop_stays(
    change: dict[str, str], refusal: str, run: Path, governance: Path, tmp_path: Path
) -> None:
    reenable(run, governance, tmp_path, "ann")
    (request,) = requests_of(run)
    (entry,), is_released = entries_after(msgspec.structs.replace(request, **change), run, governance)
    assert isinstance(entry, ReenablingRefused)
    assert entry.refusal.startswith(refusal)
    assert not is_released


def test_a_stop_of_all_runs_ends_for_a_new_run_by_those_with_the_right_alone(
    run: Path, governance: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert htfi("stop", "--governance", governance, "--by", "bo", "--why", "a drill").exit_code == 0
    made_ns = time.time_ns()
    forged = ReenableRequest(f"reenable-{made_ns}-abcdef", made_ns, "firm", "ann", "over")
    write_request(governance / CONTROL_FOLDER, forged)
    policy = load_settings(environment={}).policy
    with open_governance(run, policy, shared=governance) as (rules, _):
        rules.take_requests(0, made_ns)
        assert [type(entry) for entry in rules.logged] == [Stopped, ReenablingRefused]
    shutil.rmtree(run / "governance")
    ended = htfi("reenable", "--governance", governance, "--key", tmp_path / "ann.key", "--why", "over")
    assert ended.exit_code == 0, ended.output
    with open_governance(run, policy, shared=governance) as (rules, _):
        rules.take_requests(0, made_ns)
        assert not [entry for entry in rules.logged if isinstance(entry, Stopped)]


@pytest.mark.parametrize(("quorum", "is_ended"), [(1, True), (2, False)])
def test_what_was_signed_at_one_node_ends_the_stop_at_another_of_the_same_nodes_and_officers(
    quorum: int, is_ended: bool, run: Path, governance: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    officers = [
        (name, str(create_key(tmp_path / f"{name}.key", name).verifier_key)) for name in ("ova", "pia")
    ]
    for folder, needed in ((governance, 1), (other, quorum)):
        init_folder(folder, needed, officers)
        name_nodes(folder, ["edge1", "edge2", "cloud1"])
    shutil.copy(governance / "people.toml", other)
    assert folder_key(governance) != folder_key(other)
    done = htfi("reenable", "--governance", governance, "--key", tmp_path / "ann.key", "--why", "over")
    assert done.exit_code == 0, done.output
    (request,) = requests_of(governance)
    (entry,), is_released = entries_after(request, run, other)
    assert (isinstance(entry, Reenabled), is_released) == (is_ended, is_ended)


def test_request_to_another_run_is_refused(run: Path, governance: Path, tmp_path: Path) -> None:
    reenable(run, governance, tmp_path, "ann")
    open_ledger(tmp_path / "other", origin="htfi.run").close()
    (entry,), is_released = entries_after(requests_of(run)[0], tmp_path / "other", governance)
    assert isinstance(entry, ReenablingRefused)
    assert not is_released


def test_person_who_was_taken_off_the_list_no_longer_counts(
    run: Path, governance: Path, tmp_path: Path
) -> None:
    reenable(run, governance, tmp_path, "ann")
    people = governance / "people.toml"
    people.write_text(people.read_text().replace('name = "ann"\n', 'name = "ann"\nuntil = 1969-01-01\n'))
    (entry,), is_released = entries_after(requests_of(run)[0], run, governance)
    assert isinstance(entry, ReenablingRefused)
    assert entry.refusal.startswith("ann may not: ")
    assert not is_released


@pytest.mark.parametrize("condition", ERRING_FORBIDS)
def test_forbid_that_errs_denies(condition: str, run: Path, governance: Path, tmp_path: Path) -> None:
    """Cedar alone skips it and reads as Allow."""
    reenable(run, governance, tmp_path, "ann")
    rules = governance / "authorisation"
    rules.mkdir()
    (rules / "rules.cedar").write_text(
        f"{PERMIT}\nforbid (principal is Person, action, resource) when {{ {condition} }};"
    )
    denied = reenable(run, governance, tmp_path, "ann")
    assert denied.exit_code == 1
    (entry,), is_released = entries_after(requests_of(run)[0], run, governance)
    assert isinstance(entry, ReenablingRefused)
    assert not is_released


def test_promotion_asks_the_rules_and_keeps_the_signature(governance: Path, tmp_path: Path) -> None:
    file = settings_file(tmp_path / "a.toml", 0.95)
    record_verdict(file, governance)
    with pytest.raises(InvalidInput, match="--key: with --governance a request is signed"):
        promote(file, governance, **WHO)
    with pytest.raises(AccessDenied, match="bo may not promote a model"):
        promote(file, governance, by="", why="x", now_ns=1, key=tmp_path / "bo.key")
    entry = promote(file, governance, by="", why="x", now_ns=1, key=tmp_path / "mo.key")
    assert (entry.by, bool(entry.signed)) == ("mo", True)


def test_nobody_promotes_what_they_had_tried_first(governance: Path, tmp_path: Path) -> None:
    file = settings_file(tmp_path / "a.toml", 0.95)
    for name in ("mo", "bo"):  # who has it tried again does not hide who brought it
        record_verdict(file, governance, proposed_by=name)
    with pytest.raises(AccessDenied, match="not-ones-own-candidate"):
        promote(file, governance, by="", why="x", now_ns=1, key=tmp_path / "mo.key")
    other = settings_file(tmp_path / "b.toml", 0.96)
    record_verdict(other, governance, proposed_by="bo")
    assert promote(other, governance, by="", why="x", now_ns=1, key=tmp_path / "mo.key").by == "mo"


def test_who_proposes_is_who_signs_where_there_are_people(governance: Path, tmp_path: Path) -> None:
    assert proposer_of(Requester("", governance, tmp_path / "mo.key")) == "mo"
    with pytest.raises(AccessDenied, match="is the key of mo, not of bo"):
        proposer_of(Requester("bo", governance, tmp_path / "mo.key"))
    unnamed = htfi("sandbox", settings_file(tmp_path / "a.toml", 0.95), "--governance", governance)
    assert isinstance(unnamed.exception, InvalidInput)
    assert "name the file of your signing key" in str(unnamed.exception)
    assert proposer_of(Requester("Ann Lee", tmp_path)) == "Ann Lee"
