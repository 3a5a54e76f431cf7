"""`htfi ledger replay`: what a model said is written again from the record and the model alone."""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from htfi.apps.cli.main import cli
from htfi.domain.decision import Decision
from htfi.domain.errors import InvalidInput
from htfi.pipeline.audit.replay import reading_of
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger_readonly
from htfi.wiring.verification import replay_reading
from random_pair import write_random_pair

pytestmark = pytest.mark.usefixtures("models_opened_once")

NUM_DAYS = 48
LONG_MS = 100_000.0  # nothing hurries, so the target reads


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_random_pair(tmp_path_factory.mktemp("pair"))


@pytest.fixture(scope="module")
def run(pair: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three symbols, a headline every third day on two of them: views of one moment are written as a batch."""
    folder = tmp_path_factory.mktemp("run")
    rng = random.Random(3)
    with (folder / "prices.csv").open("w") as rows, (folder / "news.jsonl").open("w") as items:
        rows.write("ts,symbol,open,high,low,close,volume\n")
        for day in range(NUM_DAYS):
            date = time.strftime("%Y-%m-%d", time.gmtime(1_262_304_000 + 86_400 * day))
            for symbol in ("AAA", "BBB", "CCC"):
                close = 100.0 * (1 + rng.gauss(0, 0.01))
                rows.write(f"{date}T21:00:00Z,{symbol},100,103,97,{close:.4f},9\n")
            if day % 3 == 0:
                headline = f"Item {day}: the outlook was cut, the price fell"
                item = {
                    "ts": f"{date}T15:00:00Z",
                    "id": f"n{day}",
                    "headline": headline,
                    "symbols": ["BBB", "CCC"],
                }
                items.write(json.dumps(item) + "\n")
    files = [str(folder / "prices.csv"), str(folder / "news.jsonl")]
    models = ["--target", str(pair[0]), "--draft", str(pair[1])]
    environment = {"HTFI_PIPELINE__DEADLINE_MS": str(LONG_MS), "HTFI_NARRATIVE__TEMPERATURE": "1.0"}
    environment |= {"HTFI_ENCODING__MODEL": "heads"}  # every item is worth a model here
    out = str(folder / "out")
    done = CliRunner(env=environment).invoke(
        cli, ["run", *files, *models, "--plain", "--no-report", "--out", out]
    )
    assert done.exit_code == 0, done.output
    return folder / "out"


def decisions(run: Path) -> Iterator[Decision]:
    log = open_ledger_readonly(run)
    try:
        yield from [decode_entry(entry) for entry in log.entries()]
    finally:
        log.close()


def worded(run: Path) -> list[Decision]:
    return [found for found in decisions(run) if found.view is not None and found.view.trace is not None]


def test_every_reading_is_written_again(run: Path, pair: tuple[Path, Path]):
    read = worded(run)
    assert len(read) >= NUM_DAYS // 4
    drafted = stood = 0
    for decision in read:
        done = replay_reading(decision, run, pair[0])
        assert done.problems == []
        assert done.completion.tokens == done.trace.tokens
        in_depth = bool(done.trace.paths)  # the target alone, many times over
        assert done.trace.strategy == ("paths" if in_depth else "chain")
        assert done.trace.draft.startswith("" if in_depth else "draft-int8@")
        drafted += sum(len(one.drafted) for one in done.trace.rounds)
        stood += sum(len(one.accepted) for one in done.trace.rounds)
    assert drafted > stood  # a random draft is often wrong, and nothing hangs on it


def test_the_command_tells_what_was_drafted_and_that_it_holds(run: Path, pair: tuple[Path, Path]):
    decision = worded(run)[0]
    done = CliRunner().invoke(cli, ["ledger", "replay", str(run), decision.id, "--target", str(pair[0])])
    assert done.exit_code == 0, done.output
    assert "replayed: tokens, acceptance of each draft and view are the same" in done.output
    assert "in one pass" in done.output


def test_without_a_name_the_newest_reading_is_replayed(run: Path, pair: tuple[Path, Path]):
    done = CliRunner().invoke(cli, ["ledger", "replay", str(run), "--target", str(pair[0])])
    assert done.exit_code == 0, done.output
    newest = worded(run)[-1].view
    assert newest is not None
    assert newest.trace is not None
    assert f"seed {newest.trace.seed}" in done.output


def test_a_view_that_was_kept_leads_to_the_decision_it_was_read_for(run: Path):
    everything = list(decisions(run))
    kept = next(
        found
        for found in everything
        if found.view is not None and found.view.trace is None and found.view.reader.startswith("target")
    )
    log = open_ledger_readonly(run)
    try:
        read_for = reading_of(kept, log.entries())
    finally:
        log.close()
    assert read_for.id != kept.id
    assert read_for.series == kept.series
    assert kept.view is not None
    assert read_for.as_of_ns == kept.view.as_of_ns


def test_a_decision_without_news_says_so_in_a_line(run: Path):
    silent = next(found for found in decisions(run) if found.view is None)
    with pytest.raises(InvalidInput, match="no model read news"):
        reading_of(silent, [])


def test_another_model_is_told_apart_from_the_one_that_wrote(run: Path, pair: tuple[Path, Path]):
    with pytest.raises(InvalidInput, match=r"target-int8@\w+, but .*draft holds draft-int8@"):
        replay_reading(worded(run)[0], run, pair[1])


def test_what_was_changed_in_a_record_is_found(run: Path, pair: tuple[Path, Path]):
    decision = next(
        found
        for found in worded(run)
        if found.view and found.view.trace and any(one.accepted for one in found.view.trace.rounds)
    )
    view = decision.view
    assert view is not None
    assert view.trace is not None
    trace = view.trace
    at = next(place for place, one in enumerate(trace.rounds) if one.accepted)
    fewer = replace(trace.rounds[at], accepted=trace.rounds[at].accepted[:-1])
    rounds = (*trace.rounds[:at], fewer, *trace.rounds[at + 1 :])
    changes = {
        "different tokens": replace(trace, tokens=(*trace.tokens[:-2], 300, trace.tokens[-1])),
        "recorded draft": replace(trace, rounds=rounds),
        "different": replace(trace, seed=trace.seed + 1),
    }
    for told, changed in changes.items():
        done = replay_reading(replace(decision, view=replace(view, trace=changed)), run, pair[0])
        assert any(told in problem for problem in done.problems), (told, done.problems)
    flipped = replace(view, volatility_multiplier=view.volatility_multiplier + 1.0)
    assert replay_reading(replace(decision, view=flipped), run, pair[0]).problems == [
        "the view does not follow from the tokens"
    ]


def test_a_record_that_leads_the_replay_astray_is_refused_in_a_line(run: Path, pair: tuple[Path, Path]):
    decision = worded(run)[0]
    view = decision.view
    assert view is not None
    assert view.trace is not None
    first = view.trace.rounds[0]
    with pytest.raises(InvalidInput, match="prompt holds ids"):
        replay_reading(
            replace(decision, view=replace(view, trace=replace(view.trace, prompt=(10**6,)))),
            run,
            pair[0],
        )
    wild = [
        replace(view.trace, rounds=(replace(first, drafted=(0, 0), parents=(5, 0)),)),
        replace(view.trace, rounds=(replace(first, drafted=(0,), parents=()),)),
        replace(view.trace, num_items=view.trace.num_items + 1),
    ]
    for trace in wild:
        assert replay_reading(replace(decision, view=replace(view, trace=trace)), run, pair[0]).problems
