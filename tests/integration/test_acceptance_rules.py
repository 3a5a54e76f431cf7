"""`decoding.rule` from the command line to the record: each rule runs, is recorded, and is reproduced by a replay."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec import UNSET
from msgspec.structs import replace

from checks import nonempty
from examples import one_in_eight
from htfi.apps.cli.main import cli
from htfi.domain.decision import Decision
from htfi.domain.errors import IntegrityError
from htfi.domain.generation import RuleTrace
from htfi.domain.generation_trace import GenerationTrace
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger_readonly
from htfi.wiring.verification import replay_reading
from random_pair import write_random_pair

pytestmark = pytest.mark.usefixtures("models_opened_once")

NUM_DAYS = 48
RULES = ("rejection", "entropy_aware")
ENVIRONMENT = {
    "HTFI_PIPELINE__DEADLINE_MS": "100000",
    "HTFI_NARRATIVE__TEMPERATURE": "1.0",
    "HTFI_ENCODING__MODEL": "heads",  # every item is worth a model here
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_random_pair(tmp_path_factory.mktemp("pair"))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("inputs")
    with (folder / "prices.csv").open("w") as rows, (folder / "news.jsonl").open("w") as items:
        rows.write("ts,symbol,open,high,low,close,volume\n")
        for day in range(NUM_DAYS):
            date = time.strftime("%Y-%m-%d", time.gmtime(1_262_304_000 + 86_400 * day))
            rows.write(f"{date}T21:00:00Z,AAA,100,103,97,{100 + day % 5},9\n")
            if day % 3 == 0:
                item = {
                    "ts": f"{date}T15:00:00Z",
                    "id": f"n{day}",
                    "headline": f"Item {day}: the outlook was cut, the price fell",
                    "symbols": ["AAA"],
                }
                items.write(json.dumps(item) + "\n")
    return [str(folder / "prices.csv"), str(folder / "news.jsonl")]


def run(inputs: list[str], pair: tuple[Path, Path], out: Path, *options: str, **settings: str) -> str:
    models = ["--target", str(pair[0]), "--draft", str(pair[1])]
    environment = ENVIRONMENT | {f"HTFI_DECODING__{key.upper()}": value for key, value in settings.items()}
    done = CliRunner(env=environment).invoke(
        cli, ["run", *inputs, *models, "--plain", "--out", str(out), *options]
    )
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def runs(
    inputs: list[str], pair: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Path, str]]:
    found: dict[str, tuple[Path, str]] = {}
    for rule in ("coupled", *RULES):
        out = tmp_path_factory.mktemp(rule) / "out"
        found[rule] = out, run(inputs, pair, out, "--rule", rule)
    return found


def decisions(run: Path) -> Iterator[Decision]:
    log = open_ledger_readonly(run)
    try:
        yield from [decode_entry(entry) for entry in log.entries()]
    finally:
        log.close()


def traces(run: Path) -> list[tuple[Decision, GenerationTrace]]:
    """Readings for which the draft guessed."""
    return [
        (found, found.view.trace)
        for found in decisions(run)
        if found.view is not None and found.view.trace is not None and found.view.trace.draft
    ]


def test_the_shared_noise_is_recorded_as_before(runs: dict[str, tuple[Path, str]]):
    out, _ = runs["coupled"]
    assert traces(out)
    log = open_ledger_readonly(out)
    try:
        entries = list(log.entries())
    finally:
        log.close()
    assert all(b'"rule":{' not in entry for entry in entries)
    assert '"rule"' not in (out / "settings.json").read_text()


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_recorded_with_its_streams_and_drafts(rule: str, runs: dict[str, tuple[Path, str]]):
    out, _ = runs[rule]
    read = traces(out)
    assert len(read) >= 3
    for _, trace in read:
        assert isinstance(trace.rule, RuleTrace)
        assert trace.rule.name == rule
        assert trace.rule.widths == (1,)
        streams = {trace.rule.draft_stream, trace.rule.accept_stream, trace.rule.resample_stream}
        assert len(streams) == 3
        assert trace.strategy == "sampled chain"
        assert isinstance(trace.rule.threshold_nats, float) == (rule == "entropy_aware")
    assert any(one.drafted for _, trace in read for one in trace.rounds)


@pytest.mark.parametrize("rule", RULES)
def test_a_replay_reproduces_the_answer_along_the_recorded_drafts(
    rule: str, runs: dict[str, tuple[Path, str]], pair: tuple[Path, Path]
):
    out, _ = runs[rule]
    read = traces(out)
    assert read
    for decision, trace in one_in_eight(read):
        done = replay_reading(decision, out, *pair)
        assert done.problems == []
        assert done.completion.tokens == trace.tokens
    models = ["--target", str(pair[0]), "--draft", str(pair[1])]
    told = CliRunner().invoke(cli, ["ledger", "replay", str(out), read[-1][0].id, *models])
    assert told.exit_code == 0, told.output
    assert "replayed: tokens, acceptance of each draft and view are the same" in told.output


def changed(decision: Decision, **fields: object) -> Decision:
    assert decision.view is not None
    assert decision.view.trace is not None
    trace = replace(decision.view.trace, **fields)
    return replace(decision, view=replace(decision.view, trace=trace))


@pytest.mark.parametrize("rule", RULES)
def test_a_changed_draft_outcome_or_rule_is_found(
    rule: str, runs: dict[str, tuple[Path, str]], pair: tuple[Path, Path]
):
    out, _ = runs[rule]
    decision, trace = next(
        (decision, trace)
        for decision, trace in traces(out)
        if any(len(one.accepted) < len(one.drafted) for one in trace.rounds)
    )
    at = next(place for place, one in enumerate(trace.rounds) if len(one.accepted) < len(one.drafted))
    one = trace.rounds[at]

    def with_round(**fields: object) -> Decision:
        return changed(decision, rounds=(*trace.rounds[:at], replace(one, **fields), *trace.rounds[at + 1 :]))

    # The last drafted token was rejected or never reached, so nothing in the answer depends on it.
    others = [token for token in range(40, 60) if token != one.drafted[-1]]
    for token in others[:3]:
        with pytest.raises(IntegrityError, match=r"draft recorded for round|not allowed"):
            replay_reading(with_round(drafted=(*one.drafted[:-1], token)), out, *pair)
    fewer = replay_reading(with_round(token=one.token + 1), out, *pair)
    assert any(f"round {at + 1}" in problem for problem in fewer.problems)
    assert isinstance(trace.rule, RuleTrace)
    with pytest.raises(IntegrityError, match="is not known to this program"):
        replay_reading(changed(decision, rule=replace(trace.rule, accept_stream=7)), out, *pair)
    other = replace(trace.rule, name="rejection", threshold_nats=UNSET, top_n=UNSET, overlap=UNSET)
    if rule == "entropy_aware":
        assert any(
            "settings name" in problem
            for problem in replay_reading(changed(decision, rule=other), out, *pair).problems
        )


def test_only_the_entropy_aware_rule_is_said_to_change_the_distribution(runs: dict[str, tuple[Path, str]]):
    for rule, (out, output) in nonempty(runs.items()):
        page = (out / "report.html").read_text(encoding="utf-8")
        changes = rule == "entropy_aware"
        assert ("changes the distribution" in page) == changes
        assert ("changes the distribution" in output) == changes


@pytest.mark.slow
def test_other_strategies_work_under_the_rejection_rule(
    inputs: list[str], pair: tuple[Path, Path], tmp_path: Path
):
    for strategy, widths in (("tree", (2, 2, 1)), ("lookup", ())):
        out = tmp_path / strategy
        run(inputs, pair, out, "--no-report", "--rule", "rejection", strategy=strategy)
        read = [
            (found, found.view.trace)
            for found in decisions(out)
            if found.view is not None
            and found.view.trace is not None
            and isinstance(found.view.trace.rule, RuleTrace)
        ]
        assert read
        assert {trace.rule.widths for _, trace in read if isinstance(trace.rule, RuleTrace)} == {widths}
        for decision, _ in one_in_eight(read):
            assert replay_reading(decision, out, *pair).problems == []


@pytest.mark.parametrize("command", ["edge", "cloud"])
def test_edge_and_cloud_need_the_shared_noise(command: str, tmp_path: Path):
    options = ["--cloud", "c1=127.0.0.1:1"] if command == "edge" else ["--listen", "127.0.0.1:0"]
    done = CliRunner(env={"HTFI_DECODING__RULE": "rejection"}).invoke(
        cli, [command, "--name", f"{command}1", *options, "--insecure-loopback"]
    )
    assert done.exit_code != 0
    assert "needs 'coupled'" in str(done.output) + str(done.exception)


def test_an_unknown_rule_is_refused_in_a_line(tmp_path: Path):
    done = CliRunner().invoke(cli, ["run", "--rule", "greedy", "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert "coupled" in done.output
